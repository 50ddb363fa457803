"""Results as JSON, as a summary and as the tables of docs/mutation.md."""
import datetime
import json
import pathlib

BEGIN = "<!-- begin tables: written by tests/mutation/run.py -->\n"
END = "<!-- end tables -->\n"
LAYER_ORDER = ["build", "unit", "golden", "nvrtc", "host", "stress"]


def write_json(path, results):
    path.parent.mkdir(parents=True, exist_ok=True)
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")
    text = json.dumps({"date": now, "layers": counts(results), "mutants": results}, indent=1)
    temporary = path.with_suffix(".tmp")
    temporary.write_text(text + "\n")
    temporary.replace(path)


def killed_by(result, layer):
    return result["layers"].get(layer, {}).get("verdict") == "killed"


def counts(results):
    """Per layer: mutants it met and mutants it killed."""
    table = {}
    for layer in LAYER_ORDER:
        met = [result for result in results if layer in result["layers"]]
        if met:
            table[layer] = {"killed": sum(killed_by(result, layer) for result in met), "total": len(met)}
    table["all"] = {"killed": sum(result["killed"] for result in results), "total": len(results)}
    return table


def percent(part, whole):
    return f"{100 * part / whole:.1f} %" if whole else "-"


def summary_lines(results):
    lines = [f"{layer}: {number['killed']} of {number['total']} killed, {percent(number['killed'], number['total'])}"
             for layer, number in counts(results).items()]
    visible = [result for result in results if "host" in result["layers"] and not result["host_blind"]
               and not result["accepted"]]
    if visible:
        killed = sum(killed_by(result, "host") for result in visible)
        lines.append(f"host, of those that change what a kernel does: {killed} of {len(visible)} killed, "
                     f"{percent(killed, len(visible))}")
    for result in results:
        if not result["killed"]:
            lines.append(f"survivor: {result['name']}: {result['accepted'] or 'NO REASON GIVEN'}")
    for result in visible:
        if not killed_by(result, "host"):
            lines.append(f"not killed by the host layer: {result['name']}: {result['harm']}")
    return lines


def cell(result, layer):
    said = result["layers"].get(layer)
    if said is None:
        return ""
    return "killed" if said["verdict"] == "killed" else "**lives**"


def tables(results):
    """Markdown: a summary per layer, the survivors, then every mutant."""
    lines = ["| layer | mutants it meets | killed | share |", "|---|---|---|---|"]
    for layer, number in counts(results).items():
        lines.append(f"| {layer} | {number['total']} | {number['killed']} | {percent(number['killed'], number['total'])} |")
    survivors = [result for result in results if not result["killed"]]
    lines += ["", f"Survivors: {len(survivors)}.", ""]
    lines += [f"- `{result['name']}` ({result['file']}): {result['accepted'] or 'no reason given'}" for result in survivors]
    blind = [result for result in results if result["host_blind"] and not killed_by(result, "host")]
    if blind:
        lines += ["", "Not to be seen by running kernels on a CPU, and held by other layers:", ""]
        lines += [f"- `{result['name']}`: {result['host_blind']}" for result in blind]
    layers = [layer for layer in LAYER_ORDER if any(layer in result["layers"] for result in results)]
    for area in dict.fromkeys(result["area"] for result in results):
        part = [result for result in results if result["area"] == area]
        shown = [layer for layer in layers if any(layer in result["layers"] for result in part)]
        lines += ["", f"### {area}", "", "| mutant | what it would do | " + " | ".join(shown) + " |",
                  "|---" * (2 + len(shown)) + "|"]
        for result in part:
            cells = " | ".join(cell(result, layer) for layer in shown)
            lines.append(f"| `{result['name']}` | {result['harm'].replace('|', '/')} | {cells} |")
    return "\n".join(lines) + "\n"


def write_document(path, results):
    text = pathlib.Path(path).read_text()
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    pathlib.Path(path).write_text(before + BEGIN + tables(results) + END + after)
