"""The report of the demo: one HTML file that needs nothing else."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ._recorder import Point


_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem;
       margin: 2rem auto; padding: 0 1rem; color: #1b1b1b; }
table { border-collapse: collapse; margin: 1rem 0; }
th, td { border-bottom: 1px solid #ddd; padding: .3rem .9rem;
         text-align: right; }
th:first-child, td:first-child { text-align: left; }
img { max-width: 100%; }
figcaption { color: #555; }
figure { margin: 2rem 0; }
"""


def write_report(
    path: Path,
    runs: Mapping[str, Sequence[Point]],
    results: Sequence[Sequence[str]],
    ideal_auc: float,
    notes: Sequence[str],
) -> None:
    """Writes the report.

    Args:
        path: The HTML file.
        runs: Points of each model, by its title.
        results: Rows of the table of results; the first is its head.
        ideal_auc: The AUC of one who knows the true probabilities.
        notes: Sentences above the results, plain text.
    """
    head, *body = (
        _table_row(row, head=i == 0) for i, row in enumerate(results)
    )
    figures = (
        _figure(_learning(runs, ideal_auc), "Loss and test AUC over steps."),
        _figure(_growth(runs), "Keys in each table over steps."),
        _figure(_speed(runs), "Ids trained per second over steps."),
    )
    path.write_text(
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        "<title>Embedra demo</title>"
        f"<style>{_STYLE}</style></head><body><h1>Embedra demo</h1>"
        f"<ul>{''.join(f'<li>{html.escape(n)}</li>' for n in notes)}</ul>"
        f"<table><thead>{head}</thead><tbody>{''.join(body)}</tbody></table>"
        f"{''.join(figures)}</body></html>\n",
        encoding="utf-8",
    )


def _table_row(cells: Sequence[str], *, head: bool) -> str:
    tag = "th" if head else "td"
    inside = "".join(f"<{tag}>{html.escape(c)}</{tag}>" for c in cells)
    return f"<tr>{inside}</tr>"


def _figure(figure: Figure, caption: str) -> str:
    png = io.BytesIO()
    figure.savefig(png, format="png", dpi=110)
    data = base64.b64encode(png.getvalue()).decode("ascii")
    return (
        f"<figure><img alt='{caption}' src='data:image/png;base64,{data}'>"
        f"<figcaption>{caption}</figcaption></figure>"
    )


def _panels(count: int) -> tuple[Figure, list[Axes]]:
    figure = Figure(figsize=(10, 3.8), layout="constrained")
    panels = figure.subplots(1, count, squeeze=False)[0]
    for panel in panels:
        panel.set_xlabel("step")
        panel.grid(alpha=0.3)
    return figure, list(panels)


def _learning(runs: Mapping[str, Sequence[Point]], ideal_auc: float) -> Figure:
    figure, (loss, auc) = _panels(2)
    for title, points in runs.items():
        steps = [point.step for point in points]
        loss.plot(steps, [point.loss for point in points], label=title)
        auc.plot(steps, [point.auc for point in points], label=title)
    auc.axhline(ideal_auc, color="gray", linestyle="--", label="ideal")
    loss.set_ylabel("training loss")
    auc.set_ylabel("test AUC")
    auc.legend()
    return figure


def _growth(runs: Mapping[str, Sequence[Point]]) -> Figure:
    figure, panels = _panels(len(runs))
    for panel, (title, points) in zip(panels, runs.items(), strict=True):
        steps = [point.step for point in points]
        for feature in points[0].table_sizes:
            sizes = [point.table_sizes[feature] for point in points]
            panel.plot(steps, sizes, label=feature)
        panel.set_title(title)
        panel.set_ylabel("keys")
        panel.set_yscale("log")
    panels[-1].legend(loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


def _speed(runs: Mapping[str, Sequence[Point]]) -> Figure:
    figure, (panel,) = _panels(1)
    for title, points in runs.items():
        steps = [point.step for point in points]
        speeds = [point.ids_per_second for point in points]
        panel.plot(steps, speeds, label=title)
    panel.set_ylim(bottom=0)
    panel.set_ylabel("ids per second")
    panel.legend()
    return figure
