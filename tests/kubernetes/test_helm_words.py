"""How paths are given to helm, which splits and unescapes the words of some of its flags: asked of helm itself."""

from pathlib import Path

import pytest

from bettong.cluster.helm import file_words, values_words
from tests.kubernetes.chart import helm

CHART = {
    "Chart.yaml": "apiVersion: v2\nname: c\nversion: 0.1.0\n",
    "templates/map.yaml": "source: {{ .Values.source | quote }}\nplace: {{ .Values.place | quote }}\n",
}


@pytest.mark.parametrize("name", ["app", "a, b=c", 'an "a", b', "back\\slash,", "{a,b}", "[0]", "a.b"])
def test_a_path_is_taken_as_it_is(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path, text in CHART.items():
        (tmp_path / "chart" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "chart" / path).write_text(text)
    monkeypatch.chdir(tmp_path)
    Path(f"{name}.py").write_text("the source")
    Path(f"{name}.yaml").write_text("place: here")
    for folder in (tmp_path, Path()):
        values, source = folder / f"{name}.yaml", folder / f"{name}.py"
        printed = helm("template", "x", "chart", *values_words(values), *file_words("source", source))
        assert 'source: "the source"\nplace: "here"' in printed
