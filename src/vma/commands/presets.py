"""`vma presets`."""

from pathlib import Path

from rich.console import Console
from rich.table import Table

from vma.commands.data import described
from vma.runs.listing import GROUPS, RECOMMENDED, groups, roughly

SIZES = {"–": "", "unknown": ", size unknown"}
FOOT = f"""
Times are of one thread of a server's processor, and only about right. -fast is the same experiment for a small
budget; -in-order also gives crisp strokes. To begin with: vma train {RECOMMENDED}"""


def presets_command(data: Path | None = None) -> None:
    """List the presets: how long each takes, whether its data is here, what the paper does and reports.

    Args:
        data: Folder to look for the data in first; else VMA_DATA.
    """
    console = Console(highlight=False)
    names = max(len(preset.name) for listed in groups().values() for preset in listed)
    for dataset, listed in groups().items():
        state, size, _ = described(dataset, data)
        console.print(f"\n[bold]{GROUPS[dataset]}[/bold]", soft_wrap=True)
        console.print(f"[dim]dataset {dataset}: {state}{SIZES.get(size, f', {size}')}[/dim]")
        table = Table(box=None, padding=(0, 1), show_header=False)
        table.add_column(no_wrap=True, min_width=names)
        table.add_column(no_wrap=True, justify="right", min_width=7)
        table.add_column()
        for preset in listed:
            mark = "[bold]recommended:[/bold] " if preset.name == RECOMMENDED else ""
            table.add_row(preset.name, roughly(preset.seconds), mark + preset.what)
        console.print(table)
    console.print(FOOT, soft_wrap=True)
