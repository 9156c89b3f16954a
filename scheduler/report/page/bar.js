// ---- the bar

var bar = document.getElementById('bar'), tabs = {};
var input = make('input');
input.id = 'search';
input.type = 'search';
input.placeholder = 'search nodes, operators';
input.setAttribute('aria-label', 'search nodes and operators: Enter goes to the next');
input.addEventListener('input', function () { showTab('graph'); search(input.value); });
input.addEventListener('keydown', function (event) {
    if (event.key === 'Enter') next(event.shiftKey ? -1 : 1);
    if (event.key === 'Escape') { input.value = ''; search(''); input.blur(); }
});
var choice = make('select');
choice.setAttribute('aria-label', 'what the colours of the graph mean');
Object.keys(modes).forEach(function (name) {
    if (!modes[name].there) return;
    var option = make('option', modes[name].name);
    option.value = name;
    add(choice, option);
});
choice.value = mode;
choice.addEventListener('change', function () { mode = choice.value; recolor(); redraw(); });
function showTab(name) {
    var wasGraph = document.body.dataset.tab === 'graph';
    document.body.dataset.tab = name;
    Object.keys(tabs).forEach(function (tab) {
        tabs[tab].setAttribute('aria-pressed', tab === name ? 'true' : 'false');
    });
    if (name === 'graph' && !wasGraph && !isFitted) fitAll();
    redraw();
    redrawTime();
    drawCharts();
}
var hasRun = Boolean(run || data.losses || data.evaluations || data.search || data.is_live);
var facts = countText(data.boxes.length) + ' boxes, ' + countText(data.arrows.length) + ' arrows';
if (plan) facts = plan.devices.length + ' devices, ' + plan.stages.length +
    ' stages, step ' + secondsText(plan.step_seconds) + ', bubble ' +
    (100 * plan.bubble).toFixed(1) + ' %; ' + facts;
add(bar, make('h1', data.title));
bar.firstChild.title = data.title;
if (plan && plan.set) facts = 'set ' + plan.set.join(', ') + '; ' + facts;
if (hasRun) {
    var runName = !run || run.measured || data.losses || data.search || data.is_live ? 'Run' : 'Plan';
    document.getElementById('run').setAttribute('aria-label', runName);
    tabs.run = button(runName, runName + ': time line, curves, memory, traffic',
        function () { showTab('run'); });
    tabs.graph = button('Graph', 'Graph: the nodes of the model', function () { showTab('graph'); });
    add(bar, add(make('span', null, 'tabs'), tabs.run, tabs.graph));
}
levelButton = button('modules', 'modules in place of their nodes', toggleLevel);
levelButton.setAttribute('aria-pressed', 'false');
var moving = make('span', null, 'moving');
if (data.modules) add(moving, levelButton);
add(bar, make('span', facts, 'facts'), input, add(moving, choice,
    button('+', 'nearer', function () { zoomMiddle(1.4); }),
    button('\u2212', 'farther', function () { zoomMiddle(1 / 1.4); }),
    button('whole', 'the whole graph', fitAll)), button('?', 'all keys', showKeys));

// ---- keys

var KEYS = [
    ['anywhere', [['/', 'search'], ['?', 'this list'], ['1, 2', 'the run, the graph'], ['Tab', 'the next part']]],
    ['search', [['Enter', 'next found'], ['Shift+Enter', 'the one before'], ['Escape', 'end']]],
    ['graph', [['\u2191 \u2193', 'along an arrow'], ['\u2190 \u2192', 'the box aside'],
        ['Shift + arrows', 'move the view'], ['+ \u2212 0', 'nearer, farther, whole'],
        ['Home, End', 'the first, the last'], ['m', 'modules or nodes'], ['Enter', 'the nodes of a module'],
        ['Escape', 'no box']]],
    ['time line', [['\u2190 \u2192', 'the task before, the next'], ['\u2191 \u2193', 'the row above, below'],
        ['Shift+\u2190 Shift+\u2192', 'move the view'], ['+ \u2212 0', 'nearer, farther, whole'],
        ['Home, End', 'the first task, the last']]],
    ['curves', [['\u2190 \u2192', 'the step before, the next'], ['Page Up, Page Down', '20 steps'],
        ['Home, End', 'the first step, the last'], ['b', 'the best evaluation']]],
    ['pictures of stages', [['arrows', 'from one to the next']]]
];
function keyTable() {
    var table = make('table');
    KEYS.forEach(function (group) {
        group[1].forEach(function (key, index) {
            var head = make('th', index === 0 ? group[0] : '');
            head.scope = 'rowgroup';
            add(table, add(make('tr'), head, add(make('td'), make('kbd', key[0])), make('td', key[1])));
        });
    });
    return table;
}
var keysDialog = make('dialog');
keysDialog.setAttribute('aria-label', 'Keys');
add(document.body, add(keysDialog, make('h2', 'Keys'), keyTable(),
    button('close', 'close the list of keys', function () { keysDialog.close(); })));
function showKeys() { if (!keysDialog.open) keysDialog.showModal(); }
document.addEventListener('keydown', function (event) {
    if (event.ctrlKey || event.altKey || event.metaKey || event.target === input) return;
    if (event.key === '/') { event.preventDefault(); input.focus(); }
    if (event.key === '?') showKeys();
    if (event.key === '1' && tabs.run) showTab('run');
    if (event.key === '2' && tabs.graph) showTab('graph');
    if (event.key === 'm') toggleLevel();
});

// page.html#NAME shows the node of that name
function follow() {
    var name = '';
    try { name = decodeURIComponent(location.hash.slice(1)); } catch (error) { name = ''; }
    var index = data.boxes.findIndex(function (box) { return box.name === name; });
    if (name === '' || index < 0) return;
    useLevel('nodes');
    showTab('graph');
    select(index);
    center(index);
}
window.addEventListener('hashchange', follow);
window.addEventListener('resize', function () { redrawTime(); drawCharts(); });
window.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', function () {
    theme.clear();
    recolor();
    redraw();
    redrawTime();
});
recolor();
showSide();
showRun();
if (data.modules) useLevel('modules');
showTab(hasRun ? 'run' : 'graph');
follow();
var begin = performance.now();
draw();
document.body.dataset.milliseconds = Math.ceil(performance.now() - begin);
document.body.dataset.boxes = data.boxes.length;
