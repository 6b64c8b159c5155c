"""The Containerfile and its locks keep the rules of an image that is small, reproducible and without a registry."""

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from deploy.images.java_trust import PASSWORD, keystore
from deploy.relock import beyond, needs_library
from deploy.setup_plan import SetupError
from tests.images.containerfile import PATH, ROOT, SERVICES, stages, steps
from tests.servers.certificates import Authority

TEXT = PATH.read_text()
STAGES = stages(TEXT)
RUNS = [step.value for step in steps(TEXT) if step.word == "RUN"]
LABELS = {"title", "description", "licenses", "version", "revision", "vendor", "base.name"}
BLOCK = re.compile(r"^([\w.-]+)==.*\n(?:[ \t]+--hash=.*\n?)+", re.MULTILINE)
MARKER = re.compile(r" ; [^\\\n]*")


def test_the_base_is_an_argument_with_a_tag_and_every_stage_grows_from_it() -> None:
    (default,) = (step.value for step in steps(TEXT) if step.word == "ARG" and step.value.startswith("BASE="))
    tag = default.partition("=")[2].rpartition(":")[2]
    assert tag
    assert tag != "latest"
    assert {stage.origin for stage in STAGES.values()} - STAGES.keys() == {"${BASE}", "${SERVICE}"}
    assert STAGES["live"].origin == "${SERVICE}"


@pytest.mark.parametrize("service", SERVICES)
def test_each_service_is_a_target_with_a_numeric_user_tini_and_labels(service: str) -> None:
    target = STAGES[service]
    assert target.last("USER") == "10001:10001"
    assert target.last("ENTRYPOINT") == '["/usr/bin/tini", "--"]'
    assert target.last("CMD") in {f'["bettong", "{service}"]', f'["bettong-{service}"]'}
    assert {name.removeprefix("org.opencontainers.image.") for name in target.labels} == LABELS
    assert target.labels["org.opencontainers.image.title"] == f"bettong-{service}"
    # Whoever runs it may not change it: nothing is given to the user, and nothing is installed by pip.
    assert not [step for step in target.own if "--chown" in step.value or "pip" in step.value.split()]


def test_images_are_of_this_version() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert f"VERSION={version}" in {step.value for step in STAGES["image"].own if step.word == "ARG"}


def test_everything_that_pip_fetches_is_known_by_its_hash() -> None:
    calls = [
        call for run in RUNS for call in run.split("&&") if re.search(r"\bpip\b.* (install|wheel) ", call)
    ]
    assert len(calls) >= 4
    for call in calls:
        assert ("--require-hashes" in call and "-r deploy/images/" in call) or "--no-index" in call, call


def test_nothing_is_fetched_from_a_place_that_the_file_names() -> None:
    assert not re.findall(r"\w+://|\bcurl\b|\bwget\b|index-url", TEXT)
    assert "ADD" not in {step.word for step in steps(TEXT)}
    for run in RUNS:
        assert run.count("apt-get install") == run.count("--no-install-recommends")


def test_where_registries_are_reaches_the_build_as_secrets_that_no_layer_keeps() -> None:
    asked = {name for run in RUNS for name in re.findall(r"--mount=type=secret,id=(\w+)", run)}
    assert asked == {"pip", "maven", "certificates"}


def test_the_context_holds_what_the_file_copies_and_no_compiled_code() -> None:
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    assert {"*", "**/__pycache__", "src/bettong/v1"} <= set(ignored)
    let = {line.removeprefix("!") for line in ignored if line.startswith("!")}
    for stage in STAGES.values():
        for step in stage.own:
            if step.word == "COPY" and not step.value.startswith("--from="):
                for path in step.value.split()[:-1]:
                    assert any(Path(path).is_relative_to(each) for each in let), path


def pinned(name: str) -> dict[str, set[str]]:
    """The blocks of a lock by package, whatever platforms they are for."""
    text = (ROOT / name).read_text()
    found: dict[str, set[str]] = {}
    for block in BLOCK.finditer(text):
        found.setdefault(canonicalize_name(block[1]), set()).add(MARKER.sub(" ", block[0]))
    rest = BLOCK.sub("", text).splitlines()
    assert not [line for line in rest if not line.startswith("#")], f"{name}: what is this?"
    return found


@pytest.mark.parametrize("name", ["library", *SERVICES])
def test_images_hold_what_the_tests_ran_on(name: str) -> None:
    tested = pinned("requirements.lock")
    for package, blocks in pinned(f"deploy/images/{name}.lock").items():
        assert blocks <= tested[package], f"{package}: run `make lock`"


@pytest.mark.parametrize("service", SERVICES)
def test_the_locks_of_an_image_have_all_that_library_and_service_ask_for(service: str) -> None:
    have, manifests = (
        pinned(f"deploy/images/{service}.lock"),
        [ROOT / "services" / service / "pyproject.toml"],
    )
    if needs_library(ROOT / "services" / service):
        have |= pinned("deploy/images/library.lock")
        manifests.append(ROOT / "pyproject.toml")
    for manifest in manifests:
        for requirement in map(Requirement, tomllib.loads(manifest.read_text())["project"]["dependencies"]):
            name = canonicalize_name(requirement.name)
            assert name in have or name == "bettong", f"{service} wants {requirement}: run `make lock`"


def test_the_builders_are_those_that_our_manifests_ask_for() -> None:
    have = pinned("deploy/images/build.lock")
    for manifest in ROOT.glob("**/pyproject.toml"):
        if not any(part.startswith(".venv") for part in manifest.parts):
            for requirement in map(
                Requirement, tomllib.loads(manifest.read_text())["build-system"]["requires"]
            ):
                assert canonicalize_name(requirement.name) in have


def test_a_lock_beyond_another_has_what_only_it_pins() -> None:
    library = "# made\nnumpy==1 ; a \\\n    --hash=sha256:1\nnumpy==2 ; b \\\n    --hash=sha256:2\n"
    more = "pandas==3 \\\n    --hash=sha256:3\n    --hash=sha256:4\n"
    assert beyond(library + more, library) == "# made\n" + more
    with pytest.raises(SetupError, match="numpy"):
        beyond(library.replace("numpy==2", "numpy==5"), library)


def test_java_trusts_the_certificates_of_a_file_in_the_same_bytes_each_time(tmp_path: Path) -> None:
    pem = "".join(Authority(tmp_path / name).ca.read_text() for name in ("a", "b"))
    store = tmp_path / "cacerts"
    store.write_bytes(keystore(pem))
    assert keystore(pem + pem) == store.read_bytes()
    keytool = shutil.which("keytool")
    assert keytool is not None
    words = [keytool, "-list", "-keystore", str(store), "-storepass", PASSWORD]
    listed = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    assert listed.count("trustedCertEntry") == 2
    with pytest.raises(ValueError, match="no certificate"):
        keystore("")
