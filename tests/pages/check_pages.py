#!/usr/bin/python3
"""Looks at every page in headless Chromium: what is drawn, what a click and a key show, whether all of it can be
read, heard and printed, and whether it fits narrow windows.

    check_pages.py --penstock PROGRAM --pictures DIR     screenshots are left in DIR, to be looked at
"""

import argparse
import glob
import json
import os
import sys
import tempfile
import traceback

import make_pages
from browser import Browser, Page

HERE = os.path.dirname(os.path.abspath(__file__))
NARROW = 500
PAPER = 718  # what A4 has between its margins
with open(os.path.join(HERE, "contrast.js"), encoding="utf-8") as contrast_file:
    CONTRAST = contrast_file.read()
# The share of a canvas that is not of its most frequent colour, and how many colours it has.
DRAWN = """(function (canvas) {
    var data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data, counts = new Map();
    for (var i = 0; i < data.length; i += 16) {
        var key = data[i + 3] === 0 ? 'none' : data[i] + ',' + data[i + 1] + ',' + data[i + 2];
        counts.set(key, (counts.get(key) || 0) + 1);
    }
    var most = Math.max.apply(null, Array.from(counts.values())), all = data.length / 16;
    return {share: 1 - most / all, colors: counts.size};
})(%s)"""


pictures_folder = "."


def expect(condition, what):
    if not condition:
        raise AssertionError(what)


def tab(page, name):
    page.js(f"document.querySelectorAll('.tabs button').forEach(b => {{ if (b.textContent === '{name}') b.click(); }})")
    page.settle()


def tabs(page):
    return page.js("Array.from(document.querySelectorAll('.tabs button')).map(b => b.textContent)")


def place(page, what):
    """Where an element is, after it was brought into view."""
    page.js(f"document.querySelector({json.dumps(what)}).scrollIntoView({{block: 'center'}})")
    page.settle()
    return page.js(f"document.querySelector({json.dumps(what)}).getBoundingClientRect().toJSON()")


def tip(page):
    return page.js("(t => t && getComputedStyle(t).display !== 'none' ? t.textContent : '')(document.querySelector('.tip'))")


def said(page):
    return page.js("document.getElementById('said').textContent")


# ---- what holds for every page

def check_width(page, name):
    for width in (1280, 820, NARROW):
        page.resize(width)
        page.settle()
        wide = page.js("[document.documentElement.scrollWidth, document.body.scrollWidth, innerWidth]")
        expect(max(wide[:2]) <= wide[2], f"{name}: at {width} px it is {max(wide[:2])} px wide")
        over = page.js("""Array.from(document.querySelectorAll('body *')).filter(e => {
            if (e.closest('.wide, canvas, .unseen, dialog, #legend') || !e.getClientRects().length) return false;
            return e.getBoundingClientRect().right > innerWidth + 1;
        }).map(e => e.tagName + '.' + e.getAttribute('class')).slice(0, 5)""")
        expect(not over, f"{name}: at {width} px these stick out: {over}")
        # a square of a colour stands in the line of its name
        alone = page.js("""Array.from(document.querySelectorAll('td .swatch')).filter(e => {
            if (!e.getClientRects().length) return false;
            const text = document.createRange();
            text.selectNode(e.nextSibling);
            return text.getClientRects()[0].top >= e.getBoundingClientRect().bottom;
        }).map(e => e.parentNode.textContent).slice(0, 5)""")
        expect(not alone, f"{name}: at {width} px squares are above these names: {alone}")
    page.resize(1280)
    page.settle()


def check_contrast(page, name):
    for dark in (False, True):
        page.look("screen", dark)
        page.settle()
        told = page.js(CONTRAST)
        expect(told["count"] > 5, f"{name}: only {told['count']} texts were seen")
        expect(not told["found"], f"{name}, {'dark' if dark else 'light'}: {told['found'][:6]}")
    page.look("screen", False)
    page.settle()


NAMED = {"button", "link", "textbox", "searchbox", "combobox", "slider", "application", "img", "image", "region",
         "figure", "dialog", "DisclosureTriangle"}


def check_names(page, name):
    nameless = [role for role, text in page.names() if role in NAMED - {"figure"} and not text.strip()]
    expect(not nameless, f"{name}: without a name: {nameless[:6]}")
    mouse_only = page.js("""Array.from(document.querySelectorAll('[onclick], a:not([href]), [title]')).filter(e =>
        e.tabIndex < 0 && !['OPTION', 'H1'].includes(e.tagName)).map(e => e.outerHTML.slice(0, 80)).slice(0, 5)""")
    expect(not mouse_only, f"{name}: for the mouse alone: {mouse_only}")


def check_tab_stops(page, name):
    """Tab comes by everything, and round again."""
    page.js("document.activeElement.blur()")
    met, limit = 0, 400
    wanted = page.js("""(function () {
        var all = Array.from(document.querySelectorAll('button, input, select, summary, [tabindex="0"]'));
        all = all.filter(e => !e.closest('dialog') && e.getClientRects().length && !e.disabled);
        all.forEach(e => { e.wanted = true; });
        window.stops = all;
        return all.length;
    })()""")
    for _ in range(min(wanted + 2, limit)):
        page.key("Tab")
        met += page.js("""(function (e) {
            if (!e || !e.wanted) return 0;
            e.wanted = false;
            return 1;
        })(document.activeElement)""")
    expect(met == min(wanted, limit), f"{name}: Tab came by {met} of {wanted} stops; not by " + str(page.js(
        "window.stops.filter(e => e.wanted).map(e => e.outerHTML.slice(0, 60)).slice(0, 4)")))


def check_print(page, name, pictures):
    data = page.print(os.path.join(pictures, f"{name}.pdf"))
    expect(data.startswith(b"%PDF") and len(data) > 10000, f"{name}: {len(data)} bytes of PDF")
    page.look("print", False)
    page.resize(PAPER, 1000)
    page.settle()
    wide = page.js("document.documentElement.scrollWidth")
    page.screenshot(os.path.join(pictures, f"{name}-paper.png"), whole=True)
    page.resize(1280)
    expect(wide <= PAPER, f"{name}: on paper of {PAPER} px it is {wide} px wide")
    shown = page.js("""Array.from(document.querySelectorAll('button, input, select, .tip')).filter(e =>
        !e.closest('dialog') && e.getClientRects().length).map(e => e.outerHTML.slice(0, 60))""")
    page.look("screen", False)
    page.settle()
    expect(not shown, f"{name}: on paper there are {shown[:4]}")


def check_page(page, name, pictures):
    for view in tabs(page) or [None]:
        label = f"{name}-{(view or 'graph').lower()}"
        if view:
            tab(page, view)
        page.screenshot(os.path.join(pictures, f"{label}.png"))
        check_width(page, label)
        check_contrast(page, label)
        check_names(page, label)
        check_tab_stops(page, label)
        page.resize(NARROW, 1000)
        page.js("document.getElementById('run').scrollTop = 0")
        page.settle()
        page.screenshot(os.path.join(pictures, f"{label}-narrow.png"))
        page.resize(1280)
        page.look("screen", True)
        page.settle()
        page.screenshot(os.path.join(pictures, f"{label}-dark.png"))
        page.look("screen", False)
        check_print(page, label, pictures)
    check_keys_dialog(page, name)


def check_keys_dialog(page, name):
    page.js("document.activeElement.blur()")
    page.key("?")
    expect(page.js("document.querySelector('dialog').open"), f"{name}: ? shows no keys")
    page.key("Escape")
    expect(not page.js("document.querySelector('dialog').open"), f"{name}: Escape leaves the keys")


# ---- the graph

def data_of(page):
    return page.js("JSON.parse(document.getElementById('data').textContent)")


def check_graph(page, name):
    if "Graph" in tabs(page):
        tab(page, "Graph")
    drawn = page.js(DRAWN % "document.getElementById('canvas')")
    expect(drawn["share"] > 0.005 and drawn["colors"] >= 2, f"{name}: the graph is not drawn: {drawn}")
    data = data_of(page)
    there = place(page, "#canvas")
    legend = page.js("document.getElementById('legend').offsetHeight")
    there["height"] -= legend + 14 if legend else 0
    scale = min(there["width"] / data["width"], there["height"] / data["height"], 1.4)
    box = data["boxes"][len(data["boxes"]) // 2]
    x = there["x"] + there["width"] / 2 + (box["place"][0] + box["place"][2] / 2 - data["width"] / 2) * scale
    y = there["y"] + there["height"] / 2 + (box["place"][1] + box["place"][3] / 2 - data["height"] / 2) * scale
    page.click(x, y)
    shown = page.js("document.querySelector('#side h2').textContent")
    expect(shown == box["name"], f"{name}: a click on '{box['name']}' shows '{shown}'")
    page.key("Escape")
    # by keys alone
    page.js("document.getElementById('canvas').focus()")
    page.key("Home")
    first = page.js("document.querySelector('#side h2').textContent")
    expect(first == data["boxes"][0]["name"] and first in said(page), f"{name}: Home shows '{first}', says '{said(page)}'")
    arrow = next((one for one in data["arrows"] if one["from"] == 0), None)
    if arrow:
        page.key("ArrowDown")
        name_there = page.js("document.querySelector('#side h2').textContent")
        after = {data["boxes"][one["to"]]["name"] for one in data["arrows"] if one["from"] == 0}
        expect(name_there in after, f"{name}: down from the first is '{name_there}', not one of {after}")
        page.key("ArrowUp")
    page.key("Escape")
    page.key("/")
    for letter in data["boxes"][0]["op"][:12]:
        page.key(letter)
    page.key("Enter")
    expect("found" in page.js("document.getElementById('side').textContent"), f"{name}: search finds nothing")
    page.key("Escape")


# ---- the run

def check_time_line(page, name):
    data = data_of(page)
    there = place(page, ".lane:not(.axis) canvas")
    drawn = page.js(DRAWN % "document.querySelector('.lane:not(.axis) canvas')")
    expect(drawn["share"] > 0.1 and drawn["colors"] >= 4, f"{name}: the time line is not drawn: {drawn}")
    # the middle of the first task of the first device, planned
    tasks = data["run"]["planned"]["steps"][0]["devices"][0]["tasks"]
    found = ""
    for share in range(1, 60):  # where a task is depends on the step that is shown
        page.move(there["x"] + 66 + (there["width"] - 76) * share / 60, there["y"] + 12)
        found = tip(page)
        if " of " in found:
            break
    expect(tasks and " of " in found and "planned: " in found, f"{name}: nothing is told at a task: '{found}'")
    page.move(5, 5)
    page.js("document.activeElement.blur()")
    page.js("document.querySelector('.lane:not(.axis) canvas').focus()")
    page.key("Home")
    one = said(page)
    page.key("ArrowRight")
    expect(" of " in one and said(page) != one, f"{name}: keys tell '{one}', then '{said(page)}'")
    met = set()
    for _ in range(40):
        page.key("ArrowDown")
        met.add(said(page).split(",")[0])
    expect(met == {device["name"] for device in data["plan"]["devices"]}, f"{name}: down comes by {met}")
    page.key("+")
    page.key("0")
    page.js("document.activeElement.blur()")
    expect(tip(page) == "", f"{name}: what was told stays")


def check_curves(page, name, titles, best):
    shown = page.js("Array.from(document.querySelectorAll('.chart h3')).map(h => h.textContent)")
    expect(shown == titles, f"{name}: curves are {shown}, expected {titles}")
    expect(page.js("Array.from(document.querySelectorAll('svg.curves')).every(s => s.querySelectorAll('path.line').length)"),
           f"{name}: a picture has no curve")
    for number, _ in enumerate(titles, 1):
        there = place(page, f".chart:nth-child({number}) svg.curves")
        page.move(there["x"] + there["width"] / 2, there["y"] + there["height"] / 2)
        expect(tip(page).startswith("step "), f"{name}: nothing is told at a curve: '{tip(page)}'")
        page.js(f"document.querySelector('.chart:nth-child({number}) svg.curves').focus()")
        page.key("End")
        last = tip(page)
        page.key("ArrowLeft")
        value = page.js("document.activeElement.getAttribute('aria-valuetext')")
        expect(tip(page) != last and value == tip(page).replace("\n", ", "), f"{name}: keys: '{value}'")
    page.move(5, 5)
    if best:
        step = data_of(page)["evaluations"]["best_step"]
        marks = page.js("document.querySelectorAll('svg.curves circle.best').length")
        expect(marks == best, f"{name}: {marks} marks of the best, expected {best}")
        expect(page.js(f"document.body.textContent.includes('best after step {step}: ')"), f"{name}: the best is not told")
        page.js("document.querySelector('svg.curves').focus()")
        page.key("b")
        expect(tip(page).startswith(f"step {step}\n") and "the best" in tip(page), f"{name}: b tells '{tip(page)}'")
        page.js("document.activeElement.blur()")
    page.js("document.querySelector('.chart summary').click()")
    page.settle()
    rows = page.js("document.querySelectorAll('.chart table tr').length")
    expect(3 < rows <= 44, f"{name}: as numbers there are {rows} rows")
    page.js("document.querySelector('.chart summary').click()")


def check_run(page, name):
    tab(page, "Run")
    check_time_line(page, name)
    check_curves(page, name, ["Losses", "Accuracy", "Learning rate"], 2)


def check_one_device(page, name):
    tab(page, "Run")
    check_curves(page, name, ["Losses", "Accuracy", "Learning rate"], 2)


def canvas_text(page):
    return page.js("document.getElementById('canvas').getAttribute('aria-label')")


def check_large(page, name):
    """10,000 nodes begin as modules; one of them opens, and the map moves the view."""
    data = data_of(page)
    expect(len(data["boxes"]) >= 10000 and len(data["modules"]["boxes"]) <= 130, f"{name}: {len(data['boxes'])} boxes")
    expect(int(page.js("document.body.dataset.milliseconds")) < 10000, f"{name}: drawing takes long")
    expect(" modules, " in canvas_text(page), f"{name}: it begins with '{canvas_text(page)}'")
    expect(page.js("getComputedStyle(document.getElementById('map')).display") == "none", f"{name}: a map of all")
    page.js("document.getElementById('canvas').focus()")
    page.key("Home")
    page.key("ArrowDown")
    module = page.js("document.querySelector('#side h2').textContent")
    page.screenshot(os.path.join(pictures_folder, f"{name}-modules.png"))
    page.key("Enter")
    inside = page.js("document.querySelector('#side h2').textContent")
    expect(inside.startswith(module.rstrip("*")) and inside != module, f"{name}: '{inside}' is not in '{module}'")
    expect(module in said(page) and " boxes, " in canvas_text(page), f"{name}: it says '{said(page)}'")
    page.screenshot(os.path.join(pictures_folder, f"{name}-nodes.png"))
    drawn = page.js(DRAWN % "document.getElementById('map')")
    expect(drawn["colors"] >= 3, f"{name}: the map is not drawn: {drawn}")
    before = page.js(PICTURE)
    map_place = place(page, "#map")
    page.click(map_place["x"] + map_place["width"] / 2, map_place["y"] + map_place["height"] * 0.8)
    expect(page.js(PICTURE) != before, f"{name}: the map moves nothing")
    page.key("m")
    back = page.js("document.querySelector('#side h2').textContent")
    expect(back == module and " modules, " in canvas_text(page), f"{name}: m goes to '{back}', not '{module}'")
    page.key("Escape")
    there = place(page, "#canvas")  # the whole, as it was
    page.key("0")
    one = data["modules"]["boxes"][len(data["modules"]["boxes"]) // 2]
    scale = min(there["width"] / data["modules"]["width"], there["height"] / data["modules"]["height"], 1.4)
    x = there["x"] + there["width"] / 2 + (one["place"][0] + one["place"][2] / 2 - data["modules"]["width"] / 2) * scale
    y = there["y"] + there["height"] / 2 + (one["place"][1] + one["place"][3] / 2 - data["modules"]["height"] / 2) * scale
    page.click(x, y)
    shown = page.js("document.querySelector('#side h2').textContent")
    expect(shown == one["name"], f"{name}: a click on '{one['name']}' shows '{shown}'")
    page.js("document.querySelector('#side button').click()")
    page.settle()
    inside = page.js("document.querySelector('#side h2').textContent")
    expect(inside.startswith(one["name"].rstrip("*")), f"{name}: the button shows '{inside}'")


def order_of(page):
    return page.js("""Array.from(document.querySelectorAll('.lane:not(.axis) .head')).map(h =>
        [h.querySelector('b').textContent, parseFloat(h.textContent.match(/idle ([0-9.]+)/)[1])])""")


def check_many(page, name):
    """64 devices: rows of 20 pixels, in the order of idle time when that is asked for."""
    tab(page, "Plan")
    heights = page.js("Array.from(document.querySelectorAll('.lane:not(.axis)')).map(l => l.offsetHeight)")
    expect(len(heights) == 64 and max(heights) <= 22, f"{name}: rows of {sorted(set(heights))} pixels")
    before = order_of(page)
    page.js("""(function (choice) {
        choice.value = 'idle';
        choice.dispatchEvent(new Event('change'));
    })(document.querySelector('[aria-label="the order of the devices"]'))""")
    after = order_of(page)
    idle = [one[1] for one in after]
    expect(idle == sorted(idle, reverse=True) and sorted(after) == sorted(before), f"{name}: idle is {idle}")
    page.js("document.querySelector('.lane:not(.axis) canvas').focus()")
    page.key("Home")
    expect(said(page).startswith(after[0][0] + ", "), f"{name}: the first row is '{said(page)}', not {after[0][0]}")
    page.key("ArrowDown")
    page.key("ArrowDown")
    expect(said(page).startswith(after[1][0] + ", "), f"{name}: below is '{said(page)}', not {after[1][0]}")
    there = place(page, ".lane:not(.axis):last-child canvas")
    texts = set()
    for share in range(1, 80):
        page.move(there["x"] + 26 + (there["width"] - 36) * share / 80, there["y"] + 8)
        texts.add(tip(page))
    expect(any(" of " in text for text in texts), f"{name}: nothing is told at a compact task: {texts}")
    page.js("document.querySelector('[aria-pressed][aria-label^=compact]').click()")
    page.settle()
    full = page.js("document.querySelector('.lane:not(.axis)').offsetHeight")
    expect(full > 40, f"{name}: whole rows have {full} pixels")


def check_live(page, name):
    """It goes on by itself, and keeps what has the focus; when the training ends, it says so."""
    tab(page, "Run")
    page.wait("document.querySelectorAll('svg.curves').length === 3")
    page.js("document.querySelector('svg.curves').focus()")
    page.key("Home")
    step = page.js("Number(document.body.dataset.step)")
    page.wait(f"Number(document.body.dataset.step) > {step}")
    expect(page.js("document.activeElement === document.querySelector('svg.curves')"), f"{name}: the focus is lost")
    expect(tip(page).startswith("step "), f"{name}: what was pointed at is lost")
    page.js("document.activeElement.blur()")
    tiles = page.js("Array.from(document.querySelectorAll('.live .tile span')).map(e => e.textContent)")
    wanted = ["training", "step", "loss", "learning rate", "left", "bubble"]
    expect(tiles == wanted, f"{name}: tiles are {tiles}")
    state = page.js("document.querySelector('.live b').textContent")
    expect(state == "runs", f"{name}: it '{state}'")


def check_live_end(page, name):
    make_pages.stop_live()
    page.wait("document.querySelector('.live b').textContent === 'no answer'")
    expect("no longer answers" in said(page), f"{name}: at the end it says '{said(page)}'")
    page.errors = [one for one in page.errors if "ERR_CONNECTION_REFUSED" not in one]


PICTURE = "document.getElementById('canvas').toDataURL()"
CHECKS = {"large": [check_large], "many": [check_many, check_graph], "live": [check_live, check_graph, check_live_end], "run": [check_run, check_graph], "one": [check_one_device, check_graph], "plan": [check_graph], "graph": [check_graph]}


# ---- pictures, and whether what is checked would be found

def check_picture(page, path, pictures):
    """A picture by itself: no complaint, texts that can be read and that stay inside."""
    name = os.path.basename(path)
    page.errors = []
    with open(path, encoding="utf-8") as file:
        text = file.read()
    page.open("about:blank#" + name)
    page.resize(1600, 3000)
    page.js("document.body.innerHTML = " + json.dumps(text[text.index("<svg"):]))
    page.settle()
    page.screenshot(os.path.join(pictures, name + ".png"))
    told = page.js(CONTRAST)
    expect(told["count"] > 3 and not told["found"], f"{name}: {told}")
    out = page.js("""(function (whole) {
        return Array.from(document.querySelectorAll('text')).filter(e => {
            var place = e.getBoundingClientRect();
            return place.left < whole.left - 1 || place.right > whole.right + 1 || place.bottom > whole.bottom + 1;
        }).map(e => e.textContent);
    })(document.querySelector('svg').getBoundingClientRect())""")
    expect(not out, f"{name}: outside of it are {out[:3]}")
    expect(page.js("document.querySelector('svg > title') !== null"), f"{name}: it has no title")
    expect(not page.errors, f"{name}: {page.errors}")


PLANTED = """<!DOCTYPE html><title>planted</title><body><div id="said"></div>
<p>a</p><p>b</p><p>c</p><p>d</p><p>e</p><p>f</p>%s</body>"""
MISTAKES = [  # what is wrong, and the check that has to find it
    ('<p style="color: #999">pale</p>', check_contrast),
    ('<div style="background: #000"><p style="color: #555">dark</p></div>', check_contrast),
    ('<div style="width: 900px">wide</div>', check_width),
    ('<div style="width: 40px; position: relative; left: 480px">out</div>', check_width),
    ('<table><tr><td style="width: 1px"><i class="swatch" style="display: inline-block; width: 9px; height: 9px"></i>'
     'name</td></tr></table>', check_width),
    ('<button></button>', check_names),
    ('<canvas role="img"></canvas>', check_names),
    ('<i title="for the mouse">x</i>', check_names),
    ('<button onfocus="this.blur()">no way there</button><button>b</button>', check_tab_stops),
]


def check_checks(page, folder):
    """Each mistake that is planted must be found, and a page without any passes."""
    path = os.path.join(folder, "planted.html")
    for planted, check in [("", check_contrast), ("", check_width), ("", check_names), *MISTAKES]:
        with open(path, "w", encoding="utf-8") as file:
            file.write(PLANTED % planted)
        page.open(f"file://{path}?{abs(hash(planted))}")
        try:
            check(page, "planted")
            found = False
        except AssertionError:
            found = True
        expect(found == (planted != ""), f"{check.__name__} on '{planted}': found {found}")
    page.errors = []
    page.js("setTimeout(() => { throw new Error('planted'); }, 0)")
    page.settle()
    expect("planted" in str(page.errors), f"an error on the console is not seen: {page.errors}")


def attempt(name, check, *given):
    """Says how a check went: 1 if it failed, else 0."""
    try:
        check(*given)
    except (AssertionError, RuntimeError) as problem:
        print(f"  FAILED {name}: {problem}")
        if isinstance(problem, RuntimeError):
            traceback.print_exc()
        return 1
    print(f"  ok     {name}")
    return 0


def check_one(page, name, path, pictures):
    page.open(path if path.startswith("http") else f"file://{path}")
    page.wait("document.getElementById('data') !== null && document.body.dataset.boxes")  # it may be prepared still
    check_page(page, name, pictures)
    for check in CHECKS[name]:
        check(page, name)
    expect(not page.errors, f"{name}: {page.errors[:4]}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--penstock", required=True)
    parser.add_argument("--pictures", required=True)
    parser.add_argument("only", nargs="*")
    given = parser.parse_args()
    os.makedirs(given.pictures, exist_ok=True)
    global pictures_folder  # pylint: disable=global-statement
    pictures_folder = given.pictures
    failed = 0
    with tempfile.TemporaryDirectory(prefix="penstock-pages-") as folder, Browser() as browser:
        page = Page(browser)
        failed += attempt("what the checks find", check_checks, page, folder)
        page.close()
        pages = make_pages.make_all(os.path.abspath(given.penstock), folder)
        for name, path in pages.items():
            if given.only and name not in given.only:
                continue
            page = Page(browser)
            failed += attempt(name, check_one, page, name, path, given.pictures)
            page.close()
        make_pages.stop_live()
        page = Page(browser)
        for path in sorted(glob.glob(os.path.join(HERE, "../../docs/pictures/*.svg"))) + make_pages.pictures(folder):
            if not given.only or "pictures" in given.only:
                failed += attempt(os.path.basename(path), check_picture, page, path, given.pictures)
        page.close()
    print(f"pages: {failed} failed; their pictures are in {given.pictures}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
