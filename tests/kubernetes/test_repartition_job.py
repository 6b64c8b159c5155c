"""Values that repartition the application: what stands still, and the job with the command."""

from tests.kubernetes.chart import RELEASE, Chart, Rendered
from tests.kubernetes.test_values import container, env
from tests.kubernetes.value_sets import MATRIX, merged

# Who writes into logs, or folds them.
SERVICES_RUN = ("driver", "receiver", "sender", "topic-sender")


def counts(rendered: Rendered) -> dict[str, int | None]:
    """Of each set of pods, how many there are to be."""
    found = {**rendered.of("StatefulSet"), **rendered.of("Deployment")}
    return {name: each["spec"].get("replicas") for name, each in found.items()}


def test_while_an_application_is_repartitioned_nothing_of_it_runs_but_a_job_with_the_command(
    chart: Chart,
) -> None:
    values = MATRIX["repartitioned-burstable"]
    rendered, running = chart.render(values), chart.render(merged(values, {"repartition": {"arguments": []}}))
    assert counts(rendered) == {**counts(running), **dict.fromkeys(SERVICES_RUN, 0)}
    assert {counts(running)[each] for each in SERVICES_RUN} == {1, 2}
    assert running.of("Job") == {}
    assert list(rendered.of("Job")) == ["repartition-1"]
    owner = f"Job/{RELEASE}-bettong-repartition-1"
    job, driver = (
        container(rendered.pods, each) for each in (owner, f"StatefulSet/{RELEASE}-bettong-driver")
    )
    assert job["args"] == [
        *("bettong", "repartition", "/app/app.py"),
        *("--partitions", "32", "--give-up", "orders/*"),
    ]
    assert [job[each] for each in ("image", "envFrom")] == [driver[each] for each in ("image", "envFrom")]
    assert (
        env(rendered.pods, owner).items()
        <= env(rendered.pods, f"StatefulSet/{RELEASE}-bettong-driver").items()
    )
    assert job["resources"]["requests"]["memory"] == "4Gi"


def test_a_job_that_repartitions_reaches_what_a_driver_reaches(chart: Chart) -> None:
    values = merged(MATRIX["bundled-burstable"], {"repartition": {"arguments": ["--partitions", "4"]}})
    policies = chart.render(values).of("NetworkPolicy")
    for store in ("kafka", "redis"):
        peers = policies[store]["spec"]["ingress"][0]["from"]
        named = {each["podSelector"]["matchLabels"]["app.kubernetes.io/component"] for each in peers}
        assert {"driver", "repartition"} <= named
    ports = [rule["ports"] for rule in policies["repartition"]["spec"]["egress"]]
    assert ports == [[{"port": 9092, "protocol": "TCP"}], [{"port": 6379, "protocol": "TCP"}]]
