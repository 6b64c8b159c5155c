"""The command line of Spark's Java. Pure, except that it reads Spark's files.

`spark-submit` starts another Java to build that command line, a third of a second of each start. On one machine, with
Spark as installed, the line is always the same, so it is built here. If anything could change it (the user's own Spark,
`spark-env.sh` or arguments), `spark-submit` is used.

The class path leaves out MLlib. Every session would load its extension of Spark SQL, which describes its functions by
Scala reflection: a second of each start, for functions that are not called here.
"""

import os
import shlex
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from bettong.errors import SettingsError
from bettong.java import find_java
from bettong_processor.spark_master import is_one_process

_MAIN = "org.apache.spark.deploy.SparkSubmit"
_SHELL = "pyspark-shell"
_ARGUMENTS = "PYSPARK_SUBMIT_ARGS"
# If one of these is set, Spark's launcher reads more than its own folder.
_FOR_LAUNCHER = (
    "SPARK_HOME",
    "SPARK_CONF_DIR",
    "SPARK_DIST_CLASSPATH",
    "HADOOP_CONF_DIR",
    "YARN_CONF_DIR",
    _ARGUMENTS,
)
_LEFT_OUT = "spark-mllib_"
# Spark's launcher requests this module; Spark runs without it on a Java that lacks it.
_VECTORS = "jdk.incubator.vector"
# As in Spark's launcher (`JavaModuleOptions`); `tests/unit/test_processor_java.py` compares them.
_OPENED = (
    "java.base/java.lang",
    "java.base/java.lang.invoke",
    "java.base/java.lang.reflect",
    "java.base/java.io",
    "java.base/java.net",
    "java.base/java.nio",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic",
    "java.base/jdk.internal.ref",
    "java.base/sun.nio.ch",
    "java.base/sun.nio.cs",
    "java.base/sun.security.action",
    "java.base/sun.util.calendar",
    "java.security.jgss/sun.security.krb5",
)
_OPTIONS = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    *(f"--add-opens={package}=ALL-UNNAMED" for package in _OPENED),
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "-Dio.netty.handler.ssl.defaultEndpointVerificationAlgorithm=NONE",
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
    "-Dderby.connection.requireAuthentication=false",
)


def java_command(conf: Mapping[str, str], environment: Mapping[str, str]) -> list[str]:
    """The command that starts Spark's Java with `conf`. Raises SettingsError where there is no Spark."""
    home = _spark_home(environment)
    settings = [word for name, value in conf.items() for word in ("--conf", f"{name}={value}")]
    is_configured = any(environment.get(name) for name in _FOR_LAUNCHER) or (home / "conf").exists()
    # `local-cluster[...]` starts executors, for which Java needs what Spark's launcher passes to it.
    if is_configured or not is_one_process(conf["spark.master"]):
        arguments = shlex.split(environment.get(_ARGUMENTS, _SHELL))
        return [str(home / "bin" / "spark-submit"), *settings, *arguments]
    java = find_java(environment)
    vectors = () if java is not None and java.modules and _VECTORS not in java.modules else (_VECTORS,)
    jars = [str(jar) for jar in sorted((home / "jars").glob("*.jar")) if not jar.name.startswith(_LEFT_OUT)]
    return [
        "java" if java is None else str(java.program),
        *("-cp", os.pathsep.join([conf["spark.driver.extraClassPath"], *jars])),
        *shlex.split(environment.get("SPARK_SUBMIT_OPTS", "")),
        f"-Xmx{conf['spark.driver.memory']}",
        *shlex.split(conf["spark.driver.extraJavaOptions"]),
        *(f"--add-modules={module}" for module in vectors),
        *_OPTIONS,
        *(_MAIN, *settings, _SHELL),
    ]


def _spark_home(environment: Mapping[str, str]) -> Path:
    """Spark's folder: SPARK_HOME, else that of the package pyspark, which is not imported for that."""
    if environment.get("SPARK_HOME"):
        return Path(environment["SPARK_HOME"])
    package = find_spec("pyspark")
    if package is None or package.origin is None:
        raise SettingsError(
            "the package pyspark is not installed in this environment, and SPARK_HOME not set"
        )
    return Path(package.origin).parent
