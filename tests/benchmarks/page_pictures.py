"""The pictures of the page in the documentation: its overview, half a year of deciles, a marginal.

python -m tests.benchmarks.page_pictures [FOLDER]
"""

from __future__ import annotations

import io
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

from tests.web.chromium import CHROMIUM, serving

COLOURS = 128
PICTURES = Path(__file__).parent / "pictures"
CONFIG = """
store: {path: store.db}
privacy: {unit: flight, caps: {batch: 1.2, lifetime: 400}}
sources:
  flights:
    path: demo:flights.parquet
    batches: {column: date, every: 1d, start: 2013-01-01, end: 2013-07-01}
releases:
  air_time:
    {kind: quantiles, source: flights, column: air_time, measured_in: minutes, quantiles: deciles,
     resolution: 1, bounds: [0, 1000], guess: {location: 120, scale: 60}, expected_rows: 900,
     epsilon: 0.1}
  airports:
    kind: statistics
    source: flights
    by: origin
    groups: [JFK, LGA, EWR]
    epsilon: 0.5
    measures: {flights: count, late: {count: {sql: arrival_delay > 30}}}
  carriers:
    kind: workload
    source: flights
    marginals: 2
    expected_rows: 900
    epsilon: 0.5
    dimensions:
      origin: {values: [EWR, JFK, LGA]}
      carrier: {values: [UA, B6, EV, DL, AA, MQ, US, WN]}
      late: {column: arrival_delay, cuts: [15, 60]}
log: {path: streamdp.log}
"""
SHOTS = (
    ("page_overview", "/", "light", 860),
    ("page_job", "/jobs/air_time?last=all", "dark", 1180),
    ("page_workload", "/jobs/carriers?part=origin%2C+carrier", "light", 1180),
)
"""Name, address, scheme of colours and height of each."""


def main(folder: Path) -> None:
    """Release all in an empty folder, start the daemon, and take the pictures."""
    config = folder / "config.yaml"
    config.write_text(CONFIG)
    command = [sys.executable, "-m", "streamdp", "run", "-c", str(config)]
    subprocess.run([*command, "--once"], cwd=folder, check=True)
    daemon = subprocess.Popen(command, cwd=folder)
    try:
        with serving(folder) as address, sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            for name, path, scheme, high in SHOTS:
                size = {"width": 1280, "height": high}
                page = browser.new_page(viewport=size, color_scheme=scheme)  # type: ignore[arg-type]
                page.goto(address + path)
                page.wait_for_load_state("networkidle")
                drawn = Image.open(io.BytesIO(page.screenshot()))
                drawn.quantize(COLOURS).save(PICTURES / f"{name}.png", optimize=True)
            browser.close()
    finally:
        daemon.terminate()
        daemon.wait(60)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as made:
            main(Path(made))
