"""Reports: the same findings for machines, terminal and page, nothing unescaped, nothing overwritten."""

from __future__ import annotations

import io
import json
import math
import os
import stat

import click
import numpy as np
import pytest
from rich.console import Console

from tacit.cli.rendering import show_report
from tacit.cli.reports import deliver
from tacit.errors import BadInputError
from tacit.report import Figure, Finding, Light, Report, Section, Table

EVIL = "<script>alert('[red]x[/red]')</script>"


@pytest.fixture
def report() -> Report:
    findings = (
        Finding("Exact check", Light.RED, f"refuted by {EVIL}", "the bound is a theorem", refuted=True,
                numbers={"loss": math.inf, "pairs": np.int64(3)}),
        Finding("Utility", Light.GREEN, "still useful"),
    )  # fmt: skip
    table = Table("Worst", ["word", "times", "share"], [[EVIL, 1200, 0.25], ["b", None, math.nan]], private=True)
    section = Section("Checks", "What was done.", findings, (table,), (Figure("Plot", "<svg></svg>", "a plot"),))
    return Report("Audit", [section], {"rows": 2})


def test_the_worst_light_and_a_refuted_claim_decide(report):
    assert report.light is Light.RED
    assert report.refuted
    assert report.exit_code == 3
    assert Report("empty").light is Light.NONE
    assert Report("empty").exit_code == 0
    with pytest.raises(ValueError, match="red"):
        Finding("x", Light.GREEN, "y", refuted=True)


def test_json_holds_every_number_and_no_number_json_cannot_hold(report):
    data = json.loads(report.to_json())
    assert data["sections"][0]["findings"][0]["numbers"] == {"loss": "inf", "pairs": 3}
    assert data["sections"][0]["tables"][0]["rows"][1] == ["b", None, "nan"]
    assert data["private"] is True


def test_the_page_stands_alone_and_shows_text_as_text(report):
    page = report.to_html()
    assert "<script" not in page
    assert "http://" not in page
    assert "https://" not in page
    assert "quotes the original text" in page
    assert "1,200" in page
    assert "0.25" in page
    assert page.count("the bound is a theorem") == 1


def test_the_page_escapes_text_wherever_it_stands():
    hostile = "<b onclick='x'>\"&{{ 1 }}"
    figure = Figure(hostile, "<svg><g/></svg>", hostile)
    table = Table(hostile, [hostile], [[hostile]], note=hostile, groups=[(hostile, 1)])
    finding = Finding(hostile, Light.GREEN, hostile, why=hostile)
    shared = Section(hostile, hostile, [finding], [table], [figure])
    apart = Section(hostile, findings=[finding], meaning={Light.GREEN: hostile})
    page = Report(hostile, [shared, apart], {hostile: hostile}, meaning={Light.GREEN: hostile}).to_html()
    assert "<b" not in page.replace("<body>", "")
    assert page.count("&lt;b onclick=&#39;x&#39;&gt;&#34;&amp;{{ 1 }}") == 25
    assert "<svg><g/></svg>" in page


def test_the_terminal_shows_text_as_text(report):
    out = io.StringIO()
    show_report(report, Console(file=out, width=200))
    assert EVIL in out.getvalue()
    assert "it is private" in out.getvalue()


def test_saving_replaces_only_when_told_to(report, tmp_path):
    page = tmp_path / "report.html"
    report.save(page)
    with pytest.raises(BadInputError, match="exists"):
        report.save(page)
    report.save(page, force=True)
    report.save(tmp_path / "report.json")
    assert json.loads((tmp_path / "report.json").read_text())["title"] == "Audit"
    with pytest.raises(BadInputError, match="does not exist"):
        report.save(tmp_path / "no" / "report.html")
    with pytest.raises(BadInputError, match="folder"):
        report.save(tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["report.html", "report.json"]


def mode_of(path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("suffix", ["html", "json"])
def test_b8_a_report_that_quotes_originals_can_be_read_by_its_owner_only(report, tmp_path, suffix):
    before = os.umask(0o022)
    try:
        path = tmp_path / f"report.{suffix}"
        report.save(path)
        assert mode_of(path) == 0o600
        # One that is replaced, and a draft that somebody left there for everybody to read.
        path.chmod(0o644)
        draft = tmp_path / f".report.{suffix}.draft"
        draft.write_text("")
        draft.chmod(0o666)
        report.save(path, force=True)
        assert mode_of(path) == 0o600
        assert not draft.exists()
        harmless = Report("Audit", [Section("Checks", findings=[Finding("a", Light.GREEN, "good")])])
        harmless.save(tmp_path / f"harmless.{suffix}")
        assert mode_of(tmp_path / f"harmless.{suffix}") == 0o644
        harmless.save(tmp_path / f"told.{suffix}", private=True)
        assert mode_of(tmp_path / f"told.{suffix}") == 0o600
    finally:
        os.umask(before)


def test_b8_a_draft_that_leads_elsewhere_is_not_followed(report, tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("keep")
    (tmp_path / ".report.html.draft").symlink_to(victim)
    report.save(tmp_path / "report.html")
    assert victim.read_text() == "keep"


@pytest.mark.parametrize(
    ("light", "fail_on", "code"),
    [
        (Light.GREEN, "warn", 0),
        (Light.NONE, "warn", 0),
        (Light.AMBER, None, 0),
        (Light.AMBER, "bad", 0),
        (Light.AMBER, "warn", 3),
        (Light.RED, None, 0),
        (Light.RED, "bad", 3),
        (Light.RED, "warn", 3),
    ],
)
def test_c5_an_audit_can_fail_on_what_it_finds(light, fail_on, code, capsys):
    audit = Report("Audit", [Section("Attacks", findings=[Finding("Linkage", light, "found")])])
    if code:
        with pytest.raises(click.exceptions.Exit) as stopped:
            deliver(audit, None, None, as_json=True, force=False, fail_on=fail_on)
        assert stopped.value.exit_code == code
        assert f"FAILED (--fail-on {fail_on}): 1 of 1 findings: Linkage" in capsys.readouterr().err
    else:
        deliver(audit, None, None, as_json=True, force=False, fail_on=fail_on)


def test_c5_a_refuted_claim_fails_without_being_asked(report):
    with pytest.raises(click.exceptions.Exit) as stopped:
        deliver(report, None, None, as_json=True, force=False)
    assert stopped.value.exit_code == 3


def test_a_printed_report_has_its_tables_and_quotes_nothing(report):
    private = Table("Worst", ("text",), [("a secret text",)], private=True)
    both = Report("Audit", [*report.sections, Section("Quotes", tables=[private])])
    printed = str(both)
    assert all(finding.name in printed for finding in report.findings)
    assert "a secret text" not in printed
    assert "left out" in printed
    assert "\x1b" not in printed
