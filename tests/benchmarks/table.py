"""Results as text: a table a comparison, and one of all budgets."""


def shown(value, unit):
    """Return a value with its unit, in three figures or so."""
    if unit != "s":
        return f"{value:,.0f} {unit}"
    if value < 1e-3:
        return f"{value * 1e6:.1f} µs"
    if value < 1:
        return f"{value * 1e3:.2f} ms" if value < 0.1 else f"{value * 1e3:.0f} ms"
    return f"{value:.2f} s"


def table(rows, head):
    """Return *rows* under *head* as a Markdown table."""
    rows = [head, *[[str(cell) for cell in row] for row in rows]]
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in rows
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def of_result(result):
    """Return one comparison as a table; ratios are to its first run."""
    first = next(iter(result.samples.values()))
    rows = []
    for name, samples in result.samples.items():
        cells = [
            shown(value, result.unit) for value in (samples.median, samples.p99, samples.least)
        ]
        rows.append([name, *cells, f"{samples.median / first.median:.2f}", samples.count])
    head = [result.title, "median", "p99", "least", "× first", "n"]
    return table(rows, head)


def of_budgets(results):
    """Return every budget with what was measured, and whether it holds."""
    rows = []
    for result in results:
        for budget in result.budgets:
            value, sign = result.value(budget), "≥" if budget.at_least else "≤"
            if budget.of:
                measured, limit = f"{value:.2f} ×", f"{sign} {budget.most} × {budget.of}"
                limit += f" + {shown(budget.plus, result.unit)}" if budget.plus else ""
                limit += f", or + {shown(budget.beyond, result.unit)}" if budget.beyond else ""
            else:
                measured = shown(value, result.unit)
                limit = f"{sign} {shown(budget.most, result.unit)}"
            verdict = "holds" if result.holds(budget) else f"no: {_off(value, budget)}"
            rows.append([result.title, budget.run, limit, measured, verdict])
    return table(rows, ["work", "run", "budget", "measured", "verdict"])


def _off(value, budget):
    factor = budget.most / value if budget.at_least else value / budget.most
    return f"{factor:.1f} times the budget"
