"""The data sets of the experiments: what is missing is said at once, and what somebody has is put in place."""

from __future__ import annotations

import gzip
import hashlib
import json
import zipfile
from pathlib import Path

import pytest

from tacit.cli import main as command_line
from tacit.errors import BadInputError
from tacit.experiments import fetching
from tacit.experiments.config import load, wanted_files
from tacit.experiments.data_sets import KnownData, check_files, content_digest, data_folder, known_data
from tacit.experiments.fetching import Package, downloaded, fetch

ROOT = Path(__file__).resolve().parents[2]
EXPERIMENTS = sorted((ROOT / "experiments").glob("*.toml"))


def made_up(name: str, **files: bytes) -> KnownData:
    digests = {file.replace("_", ".", 1): hashlib.sha256(content).hexdigest() for file, content in files.items()}
    return KnownData(name, "made up", "text", "CC0", "nowhere", digests)


@pytest.mark.parametrize("file", EXPERIMENTS, ids=lambda path: path.stem)
def test_c9_every_file_of_a_quick_experiment_has_a_known_place_license_and_digest(file: Path) -> None:
    for name in wanted_files(load(file, "quick")):
        folder, _, rest = name.partition("/")
        if (file.parent / name).is_file():
            continue  # it comes with the experiment
        data = known_data()[folder]
        assert rest in data.files
        assert len(data.files[rest]) == 64
        assert data.license
        assert data.source


def test_c9_an_experiment_from_a_clone_says_which_files_it_wants_and_where_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("TACIT_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    assert command_line.run(["experiment", "run", str(ROOT / "experiments" / "santext.toml")]) == 2
    said = capsys.readouterr().err
    for file in ("sst2/train.tsv.gz", "sst2/dev.tsv", "glue-small/qnli-dev.tsv", "stsb/train.tsv", "stsb/test.tsv"):
        assert file in said
    assert "'tacit data fetch sst2 glue-small stsb'" in said
    assert "TACIT_DATA" in said
    assert "github.com/PhilipMay/stsb-multi-mt" in said
    assert "CC BY-SA 4.0" in said
    assert not (tmp_path / "build").exists()


def test_c9_unknown_files_are_named_too(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("text\n")
    check_files(["a.csv", "b.csv"], [tmp_path])  # the step that opens b.csv says which key names it
    with pytest.raises(BadInputError, match=r"wants 2 files, which are not in") as error:
        check_files(["a.csv", "b.csv", "cora/nodes.tsv"], [tmp_path])
    notes = "".join(error.value.__notes__)
    assert "b.csv" in notes
    assert "kimiyoung/planetoid" in notes
    with pytest.raises(BadInputError, match=r"wants the file cora/nodes\.tsv, which is not in"):
        check_files(["cora/nodes.tsv"], [tmp_path])


def test_c9_files_of_the_users_folder_are_copied_by_content(tmp_path: Path) -> None:
    first, second = b"text\nfirst\n", b"text\nsecond\n"
    data = made_up("mine", train_tsv=first, test_tsv=second)
    data = KnownData(
        data.name, data.title, data.columns, data.license, data.source,
        {"train.tsv.gz": data.files["train.tsv"], "test.tsv": data.files["test.tsv"]},
    )  # fmt: skip
    (tmp_path / "have" / "deep").mkdir(parents=True)
    (tmp_path / "have" / "train.tsv").write_bytes(b"something else")
    (tmp_path / "have" / "deep" / "train.tsv").write_bytes(first)
    (tmp_path / "have" / "test.tsv.gz").write_bytes(gzip.compress(second))
    outcomes = {each.file: (each.how, each.exact) for each in fetch(data, tmp_path / "data", tmp_path / "have")}
    assert outcomes == {"train.tsv.gz": ("copied", True), "test.tsv": ("copied", True)}
    assert gzip.decompress((tmp_path / "data" / "mine" / "train.tsv.gz").read_bytes()) == first
    assert (tmp_path / "data" / "mine" / "test.tsv").read_bytes() == second
    assert set(data.states(tmp_path / "data").values()) == {"there"}
    assert [each.how for each in fetch(data, tmp_path / "data")] == ["already there", "already there"]


def test_c9_other_content_is_kept_unless_forced(tmp_path: Path) -> None:
    data = made_up("mine", train_tsv=b"good\n")
    (tmp_path / "have").mkdir()
    (tmp_path / "have" / "train.tsv").write_bytes(b"good\n")
    place = tmp_path / "data" / "mine" / "train.tsv"
    place.parent.mkdir(parents=True)
    place.write_bytes(b"my own\n")
    assert fetch(data, tmp_path / "data", tmp_path / "have")[0] == fetching.FetchedFile(
        "train.tsv", "already there", False
    )
    assert place.read_bytes() == b"my own\n"
    assert fetch(data, tmp_path / "data", tmp_path / "have", force=True)[0].exact
    assert place.read_bytes() == b"good\n"
    with pytest.raises(BadInputError, match="there is no folder"):
        fetch(data, tmp_path / "data", tmp_path / "nowhere")


ORIGINALS = {
    "sst2/dev.tsv": (
        {"SST-2/dev.tsv": "label\tsentence\n1\tit 's fine \n0\tno wit\n"},
        "sentence\tlabel\nit 's fine\t1\nno wit\t0\n",
    ),
    "glue-small/qnli-dev.tsv": (
        {"QNLI/dev.tsv": 'index\tquestion\tsentence\tlabel\n0\tWho "said" it?\tHe did.\tentailment\n'},
        'label\tquestion\tsentence\nentailment\tWho "said" it?\tHe did.\n',
    ),
    "stsb/dev.tsv": (
        {"stsb-en-dev.csv": 'A man, alone.,"He said ""so"", twice.",2.0\n'.replace("A man, alone.", '"A man, alone."')},
        'score\tsentence1\tsentence2\n2.0\tA man, alone.\tHe said "so", twice.\n',
    ),
    "atis/test.tsv": (
        {
            "atis/test/seq.in": "flights to boston\nshow  fares\n",
            "atis/test/seq.out": "O O B-city\nO O\n",
            "atis/test/label": "atis_flight\natis_airfare\n",
        },
        "intent\ttokens\tslots\natis_flight\tflights to boston\tO O B-city\natis_airfare\tshow fares\tO O\n",
    ),
}


@pytest.mark.parametrize("name", ORIGINALS)
def test_c9_files_as_their_authors_publish_them_become_ours(name: str, tmp_path: Path) -> None:
    given, wanted = ORIGINALS[name]
    for file, text in given.items():
        path = tmp_path / "have" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    folder, _, file = name.partition("/")
    data = made_up(folder)
    exact = KnownData(folder, "", "", "", "", {file: hashlib.sha256(wanted.encode()).hexdigest()})
    assert fetch(exact, tmp_path / "a", tmp_path / "have")[0] == fetching.FetchedFile(file, "converted", True)
    assert (tmp_path / "a" / folder / file).read_text(encoding="utf-8") == wanted
    other = KnownData(folder, data.title, "", "", "", {file: "0" * 64})
    assert not fetch(other, tmp_path / "b", tmp_path / "have")[0].exact, "another version is said to be one"


@pytest.mark.parametrize("name", ["glue-small/qnli-dev.tsv", "glue-small/rte-dev.tsv", "sst2/dev.tsv", "stsb/dev.tsv"])
def test_c9_the_real_files_come_out_of_their_published_form(name: str, data_folder: Path, tmp_path: Path) -> None:
    """Our files, written as their authors publish them and fetched again, have the known content."""
    import csv

    folder, _, file = name.partition("/")
    lines = (data_folder / name).read_text(encoding="utf-8").removesuffix("\n").split("\n")
    header, *rows = [line.split("\t") for line in lines]
    published = tmp_path / fetching.ORIGINALS[name][0][0].replace("*", "")
    published.parent.mkdir(parents=True, exist_ok=True)
    if published.suffix == ".csv":
        with published.open("w", encoding="utf-8", newline="") as out:
            csv.writer(out, lineterminator="\n").writerows((first, second, score) for score, first, second in rows)
    else:
        text = ["index\t" + "\t".join(reversed(header))]
        text += [f"{number}\t" + "\t".join(reversed(row)) for number, row in enumerate(rows)]
        published.write_text("\n".join(text) + "\n", encoding="utf-8")
    data = known_data()[folder]
    only = KnownData(folder, "", "", "", "", {file: data.files[file]})
    assert fetch(only, tmp_path / "data", tmp_path) == [fetching.FetchedFile(file, "converted", True)]


def test_c9_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    (tmp_path / "QNLI").mkdir()
    (tmp_path / "QNLI" / "dev.tsv").write_text("a\tb\n1\t2\n")
    data = KnownData("glue-small", "", "", "", "", {"qnli-dev.tsv": "0" * 64})
    with pytest.raises(BadInputError, match="has no column 'label'"):
        fetch(data, tmp_path / "data", tmp_path)


def wheel(folder: Path) -> Path:
    path = folder / "some_texts-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("some_texts/part.raw.gz", gzip.compress(b"one line\n", mtime=0))
        archive.writestr("some_texts-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: some-texts\nVersion: 1.0\n")
        archive.writestr(
            "some_texts-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr("some_texts-1.0.dist-info/RECORD", "")
    return path


def test_c9_a_package_is_fetched_by_its_hash_and_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the real pip, from a folder: the right hash gives the file, a wrong one nothing."""
    (tmp_path / "index").mkdir()
    path = wheel(tmp_path / "index")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(path.parent))
    right = hashlib.sha256(path.read_bytes()).hexdigest()
    package = Package("some-texts", "1.0", right, {"part.txt.gz": "some_texts/part.raw.gz"})
    monkeypatch.setattr(fetching, "PACKAGES", {"some": package})
    data = KnownData("some", "", "", "", "", {"part.txt.gz": hashlib.sha256(b"one line\n").hexdigest()})
    assert fetch(data, tmp_path / "data") == [fetching.FetchedFile("part.txt.gz", "unpacked", True)]
    assert content_digest(tmp_path / "data" / "some" / "part.txt.gz") == data.files["part.txt.gz"]
    (tmp_path / "wrong").mkdir()
    with pytest.raises(BadInputError, match=r"pip could not fetch the package some-texts 1\.0"):
        downloaded(Package("some-texts", "1.0", "0" * 64, {}), tmp_path / "wrong")


def test_c9_the_vectors_that_come_with_tacit_give_the_known_subset(tmp_path: Path) -> None:
    data = known_data()["glove-subset"]
    outcomes = {each.file: each.exact for each in fetch(data, tmp_path)}
    assert outcomes["glove-6b-50d.top20k.f16.npy"]
    assert outcomes["glove-6b-50d.top20k.vocab.txt"]
    assert not outcomes["glove-6b-100d.top20k.f16.npy"]


def test_c9_the_command_lists_shows_and_fetches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TACIT_DATA", str(tmp_path / "data"))
    assert data_folder() == tmp_path / "data"
    assert command_line.run(["data", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert set(listed) == set(known_data())
    assert listed["banking77"]["license"] == "CC BY 4.0"
    assert command_line.run(["data"]) == 0
    assert "SmolLM2" in capsys.readouterr().out
    assert command_line.run(["data", "show", "cora"]) == 0
    assert "nodes.tsv: missing" in capsys.readouterr().out
    assert command_line.run(["data", "show", "nothing"]) == 2
    assert "'tacit data' lists them" in capsys.readouterr().err
    assert command_line.run(["data", "fetch"]) == 2
    assert "say which data sets" in capsys.readouterr().err
    (tmp_path / "have").mkdir()
    assert command_line.run(["data", "fetch", "cora", "--from", str(tmp_path / "have")]) == 2
    said = capsys.readouterr().err
    assert "cora/nodes.tsv: not found" in said
    assert "github.com/kimiyoung/planetoid" in said
    assert "MIT" in said


def test_c9_what_an_experiment_wants_is_fetched_from_a_folder(
    data_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = ROOT / "experiments" / "santext.toml"
    for name in wanted_files(load(file)):
        (tmp_path / "have" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "have" / name).write_bytes((data_folder / name).read_bytes())
    place = tmp_path / "data"
    call = ["data", "fetch", "--experiment", str(file), "--from", str(tmp_path / "have"), "--data", str(place)]
    assert command_line.run(call) == 0, capsys.readouterr().err
    check_files(wanted_files(load(file)), [place])
    assert "sst2: license: none stated" in capsys.readouterr().err
