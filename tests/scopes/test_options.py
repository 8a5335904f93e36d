"""Options of scopes, and their defaults from the environment."""

import logging
import os
import subprocess
import sys
import threading

import pytest

import embedra as hb
from embedra.scopes import Options, current_options


def test_defaults_hold_outside_scopes():
    assert hb.context.options == Options()
    assert not hb.context.options.sharding
    assert hb.context.options.mode == "train"


def test_inner_scope_changes_only_what_it_names():
    with hb.scope(mode="eval", keep_checkpoint_max=2):
        with hb.scope(keep_checkpoint_max=3) as inner:
            assert inner is hb.context
            expected = Options(mode="eval", keep_checkpoint_max=3)
            assert inner.options == expected
        assert current_options().keep_checkpoint_max == 2
    assert current_options() == Options()


def test_options_return_to_what_they_were_after_an_error():
    with pytest.raises(RuntimeError, match="oops"), hb.scope(mode="infer"):
        raise RuntimeError("oops")  # noqa: EM101
    assert current_options().mode == "train"


def test_scopes_hold_in_their_thread_alone():
    seen = []
    with hb.scope(mode="eval"):
        thread = threading.Thread(
            target=lambda: seen.append(current_options().mode)
        )
        thread.start()
        thread.join()
    assert seen == ["train"]


def test_embedding_scope_shards_and_takes_options():
    with hb.embedding_scope(seed=7) as context:
        assert context.options == Options(sharding=True, seed=7)


def test_context_scope_is_the_same():
    with hb.context.scope(model_dir="runs/1") as context:
        assert context is hb.context
        assert hb.context.options.model_dir == "runs/1"


def test_function_runs_in_its_scope_and_keeps_its_name():
    @hb.function(mode="eval")
    def evaluate(step, *, name="validation"):
        """Evaluates."""
        return step, name, current_options().mode

    assert evaluate(3, name="test") == (3, "test", "eval")
    assert evaluate.__name__ == "evaluate"
    assert current_options().mode == "train"


def generator():
    yield 1


async def coroutine():
    pass


@pytest.mark.parametrize("later", [generator, coroutine])
def test_functions_that_run_after_their_call_are_refused(later):
    with pytest.raises(
        TypeError, match=f"{later.__name__}.*with embedra.scope"
    ):
        hb.function(mode="infer")(later)


def test_unknown_option_lists_the_known_ones():
    with (
        pytest.raises(TypeError, match="no option `shard`.*sharding, mode"),
        hb.scope(shard=True),
    ):
        pass
    with pytest.raises(TypeError, match="no option `shard`"):
        hb.function(shard=True)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("sharding", "perhaps", "True or False"),
        ("mode", "test", "one of"),
        ("wire_dtype", "int8", "one of .*bfloat16.*"),
        ("seed", 1.5, "an integer"),
        ("seed", True, "an integer"),
        ("keep_checkpoint_max", 0, "an integer of at least 1"),
        ("keep_checkpoint_every_n_hours", -1, "a positive number of hours"),
        ("keep_checkpoint_every_n_hours", "x", "a positive number of hours"),
    ],
)
def test_wrong_value_is_named_with_what_is_expected(name, value, expected):
    with (
        pytest.raises(
            ValueError, match=f"Option `{name}` must be {expected}.*{value}"
        ),
        hb.scope(**{name: value}),
    ):
        pass


def test_options_are_not_assigned_to():
    with pytest.raises(AttributeError, match="EMBEDRA_SHARDING"):
        hb.context.options.sharding = True


def test_environment_gives_defaults(monkeypatch):
    monkeypatch.setenv("EMBEDRA_SHARDING", "yes")
    monkeypatch.setenv("EMBEDRA_SEED", "11")
    monkeypatch.setenv("EMBEDRA_KEEP_CHECKPOINT_EVERY_N_HOURS", "0.5")
    monkeypatch.setenv("EMBEDRA_WIRE_DTYPE", "bfloat16")
    assert Options.from_environment() == Options(
        sharding=True,
        seed=11,
        keep_checkpoint_every_n_hours=0.5,
        wire_dtype="bfloat16",
    )


def test_defaults_hold_where_scopes_say_nothing_else():
    code = (
        "import embedra as hb; print(hb.context.options.mode)\n"
        "with hb.scope(mode='infer'): print(hb.context.options.mode)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "EMBEDRA_MODE": "eval"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout.split() == ["eval", "infer"]


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("EMBEDRA_SHARDING", "2"),
        ("EMBEDRA_MODE", "TRAIN"),
        ("EMBEDRA_KEEP_CHECKPOINT_MAX", "many"),
    ],
)
def test_wrong_value_in_the_environment_names_the_variable(
    monkeypatch, variable, value
):
    monkeypatch.setenv(variable, value)
    with pytest.raises(ValueError, match=f"{variable} must be.*{value}"):
        Options.from_environment()


@pytest.mark.parametrize(
    "name", ["comm_default", "comm_wire_dtype", "grad_lazy_sync"]
)
def test_options_about_graphics_cards_say_that_they_change_nothing(
    name, caplog
):
    with (
        caplog.at_level(logging.INFO, logger="embedra"),
        hb.scope(**{name: "x"}) as context,
    ):
        assert context.options == Options()
    assert f"`{name}`" in caplog.text
    assert "the option changes nothing" in caplog.text
