"""What the person at the terminal hears, from one run or from several at once."""

from __future__ import annotations

import io
import threading
from contextlib import redirect_stderr

from deltaworks.cli.progress import Progress, _Doing, doing_text
from deltaworks.model.events import RunStarted, StageStarted


def test_several_runs_share_one_line() -> None:
    doing = [_Doing("orders: load orders", 10.0), _Doing("stock: extract source", 12.4)]
    both = "orders: load orders (5 s); stock: extract source (3 s)"
    assert doing_text(doing, 15.0, 0) == both
    assert doing_text(doing, 15.0, 7) == f"{both}, 7 rows so far"
    assert doing_text(doing[:1], 15.0, 7) == "orders: load orders (5 s, 7 rows so far)"


def tell(progress: Progress, name: str) -> None:
    progress.listen(RunStarted(run_id="1", pipeline=name))
    for i in range(20):
        stage = StageStarted(run_id="1", pipeline=name, stage=f"s{i}", kind="transform")
        progress.listen(stage)


def test_lines_told_from_several_threads_stay_whole() -> None:
    with redirect_stderr(io.StringIO()) as heard, Progress(quiet=False) as progress:
        threads = [threading.Thread(target=tell, args=(progress, name)) for name in "abc"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    wanted = [f"{n}: transform s{i}" for n in "abc" for i in range(20)]
    assert sorted(heard.getvalue().splitlines()) == sorted(
        [*wanted, *(f"{n}: run 1" for n in "abc")]
    )


def test_quiet_says_nothing() -> None:
    with redirect_stderr(io.StringIO()) as heard, Progress(quiet=True) as progress:
        tell(progress, "a")
    assert heard.getvalue() == ""
