"""`lossforge certify`, `frontier` and `design` as a user types them."""

import json
import os
import subprocess
import sys

import pytest

pytest.importorskip("typer")
import numpy as np
import torch
from typer.testing import CliRunner

import lossforge
from lossforge import noise, theory
from lossforge.benchmark import one_run
from lossforge.cli.main import app
from lossforge.theory import rate_text

TEN = ("--classes", "10")
STEEP = "BEF(beta=-8, tau=1)"


def run(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)))


def strict(text):
    """JSON as the standard has it: no NaN, no Infinity."""

    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


def write_csv(path, rows):
    path.write_text("\n".join(",".join(map(str, row)) for row in rows) + "\n")
    return path


@pytest.mark.parametrize("verb", ["certify", "frontier", "design"])
def test_help_shows_examples_on_lines_of_their_own(verb):
    result = run(verb, "--help")
    assert result.exit_code == 0
    assert f"\n  lossforge {verb} " in result.stdout


@pytest.mark.parametrize(
    ("loss", "labels", "status", "words"),
    [
        ("BEF", "symmetric:0.8", "PROVED", "BEF is robust to this noise (symmetric:0.8, 10 "),
        ("BEF", "pair:0.4", "PROVED", "BEF is robust to this noise"),
        (STEEP, "pair:0.4", "REFUTED", "is not robust to this noise"),
        ("CE", "pair:0.1", "REFUTED", "is not the true class at full confidence"),
        ("ce", "symmetric:0", "PROVED", "ce is robust"),
        ("0.5*GCE(q=0.7) + 0.5*MAE", "symmetric:0.5", "REFUTED", "lower the true class's score"),
    ],
)
def test_certify_answers_first_and_then_shows_the_numbers(loss, labels, status, words):
    result = run("certify", loss, "--noise", labels, *TEN)
    assert result.exit_code == (0 if status == "PROVED" else 1), result.output
    answer, numbers = result.stdout.split("\n\n")
    assert words in " ".join(answer.split())
    assert numbers.startswith(f"verdict   {status}")
    assert "\nclaim     raising the true class's logit never" in numbers
    assert "\nrule      " in numbers
    assert max(map(len, result.stdout.splitlines())) <= 100


def test_a_refuted_claim_tells_what_still_holds_and_what_to_do():
    text = " ".join(run("certify", STEEP, "--noise", "pair:0.4", *TEN).stdout.split())
    assert "is the true class at full confidence, but training may not find it." in text
    assert "next: `lossforge design --noise pair:0.4 --classes 10`" in text
    assert "witness u[0] = " in text


def test_what_the_theory_does_not_cover_is_said_and_exits_with_1():
    result = run("certify", "ANL-CE", "--noise", "weights:0.6,0.3,0.1", "--claim", "global")
    assert result.exit_code == 1
    assert result.stdout.startswith("Nothing is proved about ANL-CE under this noise")


@pytest.mark.parametrize(
    ("loss", "labels", "claim", "reason"),
    [
        ("BEF", "pair:0.3", "transfers", "transfers are decided for target separation alone"),
        ("NCE", "pair:0.3", "transfers", "decided where all wrong labels are equally likely"),
        ("NCE", "symmetric:0.3", "global", "whether there is only one is not known"),
        ("CE+LC", "pair:0.3", "global", "declares no parts"),
    ],
)
def test_the_reason_why_nothing_is_proved_is_said(loss, labels, claim, reason):
    result = run("certify", loss, "--noise", labels, *TEN, "--claim", claim)
    answer = " ".join(result.stdout.split("\n\n")[0].split())
    assert result.exit_code == 1
    assert reason in answer
    assert "the theory does not cover it" not in answer
    assert "no counterexample was found" not in answer  # none was looked for


def test_a_ratio_is_shown_where_it_decided():
    proved = run("certify", "AGCE", "--noise", "pair:0.3", *TEN).stdout
    assert "\nratio     1.48" in proved
    assert "allowed 2.33" in proved
    refuted = run("certify", STEEP, "--noise", "pair:0.4", *TEN).stdout
    assert "\nratio" not in refuted
    assert "\nrule      counterexample: dW/dz_t > 0 at the witness" in refuted
    undecided = run("certify", STEEP, "--noise", "pair:0.2999", *TEN).stdout
    assert "verdict   UNDECIDED" in undecided
    assert "to pass is sufficient only" in undecided


def test_a_witness_of_logits_is_shown_as_logits():
    assert "\nwitness   z[0] = " in run("certify", "CE+LC", "--noise", "pair:0.3", *TEN).stdout


def test_full_confidence_is_told_from_nearly_full_confidence():
    text = run("certify", "CE", "--noise", "pair:0.4", *TEN).stdout
    assert "u[0] = 1 - " in text


@pytest.mark.parametrize("claim", ["monotone", "transfers", "global"])
@pytest.mark.parametrize("loss", ["BEF", "CE", "NCE+RCE"])
def test_json_is_the_verdict(loss, claim):
    result = run("certify", loss, "--noise", "asymmetric:cifar10:0.4", "--claim", claim, "--json")
    found = strict(result.stdout)
    labels = noise.asymmetric("cifar10", 0.4)
    verdict = theory.certify(lossforge.parse(loss), labels, claim=claim)
    assert found == json.loads(json.dumps(verdict.to_dict()))
    assert result.exit_code == (0 if verdict.status == "PROVED" else 1)


def test_a_matrix_comes_from_a_file_in_either_form(tmp_path):
    T = noise.pair(5, 0.3)
    written = write_csv(tmp_path / "T.csv", T.tolist())
    np.save(tmp_path / "T.npy", T.numpy().astype(np.float32))
    for path in (written, tmp_path / "T.npy"):
        found = strict(run("certify", "BEF", "--noise", path, "--json").stdout)
        assert found["status"] == theory.certify(lossforge.BEF(), T).status
        assert found["allowed"] == pytest.approx(theory.certify(lossforge.BEF(), T).allowed)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("GEC", "--noise", "pair:0.4", *TEN), "unknown loss 'GEC'; did you mean GCE"),
        (("GCE(q=3)", "--noise", "pair:0.4", *TEN), "q must be in (0, 1], got 3"),
        (("BEF", "--noise", "symmetric:0.95", *TEN), "has no unique largest weight"),
        (("BEF", "--noise", "symmetric:0.9", *TEN), "the rate must be below 0.9"),
        (("BEF", "--noise", "pair:0.5", *TEN), "the rate must be below 0.5"),
        (("BEF", "--noise", "asymmetric:mnist:0.6"), "the rate must be below 0.5"),
        (("BEF", "--noise", "symmetric:1.2", *TEN), "rate of noise must be in [0, 1]"),
        (("BEF", "--noise", "symmetric:x", *TEN), "symmetric noise must be symmetric:RATE"),
        (("BEF", "--noise", "symmetric:0.4"), "needs the number of classes"),
        (("BEF", "--noise", "asymmetric:0.4", *TEN), "asymmetric:cifar10:0.4"),
        (("BEF", "--noise", "asymmetric:svhn:0.4"), "unknown class map 'svhn'"),
        (("BEF", "--noise", "asymmetric:cifar100:0.4", *TEN), "is over 100 classes, not 10"),
        (("BEF", "--noise", "weights:0.6,0.3"), "row 0 of the noise must sum to 1, got 0.9"),
        (("BEF", "--noise", "weights:0.5,0.5"), "no unique largest weight"),
        (("BEF", "--noise", "weights:nan,0.5"), "must hold probabilities"),
        (("BEF", "--noise", "human:worst"), "is not described by a transition matrix"),
        (("BEF", "--noise", "no-such.csv"), "No such file"),
        (("BEF", "--noise", "no-such.npy"), "No such file"),
        (("BEF", "--noise", "pair:0.4", "--classes", "1"), "--classes must be"),
        (("BEF", "--noise", "pair:0.4", *TEN, "--cells", "2"), "cells must be"),
    ],
)
def test_what_certify_cannot_read_exits_with_2_and_one_line(words, message):
    result = run("certify", *words)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        ("a,b\n1,0\n", "name the classes in the same order"),
        ("0.9,0.1\n0.3\n", "equally long"),
        ("0.9,0.1\n0.3,0.6\n", "row 1 of T must sum to 1, got 0.9"),
        ("0.9,0.1\n0.6,0.4\n", "row 1 of the noise has no unique largest weight"),
        ("0.9,0.1\n0.3,0.7\n0.5,0.5\n", "square"),
        ("0.9,0.2\n-0.1,1.1\n", "row 1 of T must hold probabilities"),
    ],
)
def test_a_wrong_csv_file_is_named_with_its_row(tmp_path, content, message):
    (tmp_path / "T.csv").write_text(content)
    result = run("certify", "BEF", "--noise", tmp_path / "T.csv")
    assert result.exit_code == 2
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("content", ["pickle", "short", "text", "complex"])
def test_a_wrong_npy_file_is_refused_and_never_unpickled(tmp_path, content):
    path = tmp_path / "T.npy"
    if content == "pickle":
        np.save(path, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    elif content == "complex":
        np.save(path, np.eye(3, dtype=complex))
    else:
        path.write_bytes(b"" if content == "short" else b"0.9 0.1")
    result = run("certify", "BEF", "--noise", path)
    assert result.exit_code == 2
    assert str(path) in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("name", lossforge.names())
def test_every_loss_of_the_catalogue_gets_an_answer(name):
    result = run("certify", name, "--noise", "weights:0.6,0.3,0.1")
    if name in ("forward", "backward"):  # these need the noise to correct for
        assert result.exit_code == 2
        assert "'T'" in result.stderr
    else:
        assert result.exit_code in (0, 1), result.output


def test_frontiers_are_a_table_beside_the_limits():
    result = run("frontier", "AGCE", "MAE", "NCE+RCE", *TEN)
    assert result.exit_code == 0, result.output
    lines = {line.split()[0]: line.split()[1:] for line in result.stdout.splitlines() if line}
    assert lines["loss"] == ["symmetric", "pair"]
    assert lines["MAE"] == ["0.9000", "100", "%", "0.5000", "100", "%"]
    assert lines["limit"] == ["0.9000", "0.5000"]
    assert lines["NCE+RCE"][3] == "0.0000"
    assert "nothing is proved, however small the rate" in result.stdout
    agce = theory.frontier(lossforge.make("AGCE"), 10, "pair").rate
    assert lines["AGCE"][3] == rate_text(agce)
    assert float(lines["AGCE"][3]) <= agce


def test_a_direction_is_read_and_json_is_valid(tmp_path):
    ray = torch.eye(4, dtype=torch.float64).roll(1, 1)
    path = write_csv(tmp_path / "ray.csv", ray.tolist())
    words = ("frontier", "AGCE", "--classes", "4", "--noise", path, "--json")
    found = strict(run(*words).stdout)
    assert [one["direction"] for one in found] == ["symmetric", "pair", "given"]
    assert {one["loss"] for one in found} == {"AGCE"}
    assert found[2]["rate"] == pytest.approx(found[1]["rate"])


@pytest.mark.parametrize("kind", ["svg", "png"])
def test_the_frontier_is_drawn(tmp_path, kind):
    path = tmp_path / f"frontier.{kind}"
    result = run("frontier", "MAE", "NCE+RCE", "--classes", "4", "--out", path)
    assert result.exit_code == 0, result.output
    assert path.stat().st_size > 5000
    assert f"plot: {path}" in result.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("BEF", "GEC", *TEN), "unknown loss 'GEC'"),
        (("BEF", "--classes", "1"), "--classes must be"),
        (("MAE", *TEN, "--out", "a.pdf"), "must be a .png or .svg file"),
        (("MAE", *TEN, "--out", "no-such-folder/a.png"), "there is no folder"),
        (("MAE", "--classes", "2", "--out", "a.png"), "3 or more"),
        (("MAE", *TEN, "--noise", "ray.txt"), "unknown noise 'ray.txt'"),
        (("MAE", *TEN, "--noise", "ray.csv"), "No such file"),
    ],
)
def test_what_frontier_cannot_read_exits_with_2_and_one_line(words, message):
    result = run("frontier", *words)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_direction_of_another_size_is_named(tmp_path):
    path = write_csv(tmp_path / "ray.csv", [[0, 1], [1, 0]])
    result = run("frontier", "MAE", *TEN, "--noise", path)
    assert result.exit_code == 2
    assert "is over 2 classes, not 10" in result.stderr


def test_shown_rates_never_exceed_the_proved_ones():
    assert rate_text(0.40319) == "0.4031"
    assert rate_text(0.9 - 1e-16) == "0.9000"
    assert rate_text(0.0) == "0.0000"


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("--noise", "pair:0.4", *TEN),
        ("--noise", "symmetric:0.8", *TEN, "--family", "quadratic"),
        ("--noise", "weights:0.6,0.3,0.1"),
        ("--classes", "4"),
    ],
)
def test_a_designed_loss_reads_back_proves_and_trains(words):
    result = run("design", *words)
    assert result.exit_code == 0, result.output
    found = strict(run("design", *words, "--json").stdout)
    assert f"\n  {found['loss']}\n" in result.stdout
    loss = lossforge.parse(found["loss"])
    assert str(loss) == found["loss"]
    assert one_run("digits", "pair:0.4", found["loss"]).spec.expression == found["loss"]
    if "--noise" in words:
        options = ["--noise", words[1], "--classes", found["num_classes"]]
        assert run("certify", found["loss"], *options).exit_code == 0
        assert found["verdict"]["status"] == "PROVED"
    for one in found["frontiers"]:
        assert 0 < one["rate"] <= one["limit"] * (1 + 1e-12)


@pytest.mark.slow
def test_the_admissible_set_is_shown():
    text = " ".join(run("design", "--noise", "pair:0.4", *TEN).stdout.split())
    assert "a from 0.6667 to 1.5, that is tau from 6 to 13.5" in text
    assert "theta from 0.4 to 0.6" in text
    assert "factor of 1.5 (log 0.4055)" in text
    assert "train with it: lossforge train --noise pair:0.4 --loss '" in text
    unknown = " ".join(run("design", "--classes", "4").stdout.split())
    assert "differ by a factor of 1.5: beta of " in unknown
    assert "at gamma 0.25" in unknown


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "the number of classes or the noise is needed"),
        (("--noise", "pair:0.5", *TEN), "the rate must be below 0.5"),
        (("--classes", "1"), "must be an integer of 2 or more"),
    ],
)
def test_what_design_cannot_read_exits_with_2_and_one_line(words, message):
    result = run("design", *words)
    assert result.exit_code == 2
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.slow
def test_the_shell_sees_the_statuses():
    words = [sys.executable, "-m", "lossforge", "certify", "MAE", "--noise"]
    for labels, status in (("weights:0.6,0.4", 0), ("weights:0.4,0.6,0.1", 2)):
        done = subprocess.run(
            [*words, labels], capture_output=True, text=True, env={**os.environ}, timeout=120
        )
        assert done.returncode == status, done.stderr
