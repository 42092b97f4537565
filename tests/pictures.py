"""Makes the pictures of the README from the help centre: python tests/pictures.py (needs chromium and chromedriver)."""

from __future__ import annotations

import sys
from pathlib import Path

from selenium.webdriver.common.by import By
from surrealdb import RecordID

from browser import chromium, look
from definitions import DEFINITIONS
from surrecall import Database, Options, Settings, _report, _seed, evaluate
from surrecall._serve import codes
from test_serve import serving

FOLDER = Path(__file__).parents[1] / "docs" / "pictures"
NAMES = ("report.png", "retrievers.png", "label.png")
_WIDTH, _HEIGHT = 900, 640
_KINDS = """
UPDATE [question:rate_limit, question:expired_card] SET kind = 'lexical';
UPDATE [question:signin, question:money_back, question:stop_boxes] SET kind = 'conceptual';
UPDATE [question:late_parcel, question:arrived_broken, question:gift_voucher] SET kind = 'factual';
CREATE eval_floor:hybrid CONTENT { retriever: 'hybrid', metric: 'recall', k: 3, minimum: 0.8, file: true };
"""
_PARCELS = """
CREATE article:late_parcels SET title = 'Late parcels', content = 'My parcel is late: where is it, and when does it arrive?',
  embedding = [0, 0, 1, 0];
CREATE article:parcel_faq SET title = 'Where is my parcel', content = 'A parcel that has not arrived yet is late, not lost.',
  embedding = [0, 0, 1, 0];
CREATE article:parcel_number SET title = 'The number of a parcel',
  content = 'Has your parcel not arrived yet? Ask with its number.', embedding = [0, 0, 1, 0];
"""


def make(folder: Path) -> None:
    """Write the three pictures into a folder."""
    with Database(Settings("mem://")) as database, chromium() as browser:
        database.run(DEFINITIONS)
        _seed.seed(database)
        database.run(_KINDS)
        evaluate(database, Options((1, 3, 5)))
        database.run(_PARCELS)
        evaluate(database, Options((1, 3, 5), note="three articles on parcels"))
        report = folder / "report.html"
        report.write_text(_report.page(_report.gather(database, _report.Asked(k=3))), encoding="utf-8")
        look(browser, report.as_uri(), _WIDTH, height=_HEIGHT)
        browser.save_screenshot(str(folder / NAMES[0]))
        browser.execute_script("document.querySelector('#retrievers').scrollIntoView()")
        browser.save_screenshot(str(folder / NAMES[1]))
        report.unlink()
        with serving(database) as page:
            look(browser, f"{page.url}/?token={page.token}", _WIDTH, height=_HEIGHT)
            question = codes.code(RecordID("question", "late_parcel"))
            look(browser, f"{page.url}/label?question=~{question}", _WIDTH, height=_HEIGHT, dark=True)
            browser.find_element(By.CSS_SELECTOR, "button[value=relevant]").click()
            browser.execute_script("document.activeElement.blur()")
            browser.save_screenshot(str(folder / NAMES[2]))


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    make(FOLDER)
    sys.stdout.write("\n".join(f"{name} {(FOLDER / name).stat().st_size // 1000} kB" for name in NAMES) + "\n")
