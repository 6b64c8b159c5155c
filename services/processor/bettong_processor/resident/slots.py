"""How many tasks Spark's executors can run at a time: the slots of the resident schedule."""

from pyspark import SparkContext


def slots_of(context: SparkContext) -> int:
    """Over all executors that live now; on `local[N]`, N. Raises Py4JError when Java is gone.

    Spark's own word for it is `maxTasks` of
    https://spark.apache.org/docs/latest/monitoring.html#rest-api (applications/[app-id]/executors); read from the
    same place, for the page itself may be switched off.
    """
    scala = context._jsc.sc()  # noqa: SLF001 - Python has no other way to ask
    executors = scala.statusStore().executorList(True)  # noqa: FBT003 - Java takes no keywords
    return sum(executors.apply(place).maxTasks() for place in range(executors.size()))
