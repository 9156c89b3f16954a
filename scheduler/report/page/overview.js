// ---- the overview of a plan and its run

function section(area, title) {
    return add(area, make('h2', title));
}
function scrolled(table) {
    return add(make('div', null, 'wide'), table);
}
function tile(name, value, rest) {
    return add(make('div', null, 'tile'), make('span', name), make('b', value), make('em', rest));
}
function showTiles(area) {
    var tiles = make('div', null, 'tiles'), measured = run.measured, again = run.with_measured_costs;
    var planned = secondsText(run.planned.step_seconds), bubble = percent(run.planned.bubble);
    if (measured) {
        add(tiles,
            tile('step', secondsText(measured.step_seconds),
                'planned ' + planned + '; ' + secondsText(again.step_seconds) + ' with the measured costs'),
            tile('bubble', percent(measured.bubble),
                'planned ' + bubble + '; ' + percent(again.bubble) + ' with the measured costs'));
    } else {
        add(tiles,
            tile('step, planned', planned, 'at least ' +
                (plan.objective === 'traffic' ? bytesText : secondsText)(plan.lower_bound) + ' for ' + plan.objective),
            tile('bubble, planned', bubble, 'of the time of the devices in use'));
    }
    var slowest = (measured || run.planned).slowest_stage;
    if (slowest !== undefined)
        add(tiles, tile('slowest stage', plan.stages[slowest].name,
            'on ' + plan.devices[plan.stages[slowest].device].name));
    add(tiles,
        tile('schedule', plan.schedule, plan.microbatches + ' microbatches of ' + plan.microbatch_size),
        tile('placement', plan.strategy, plan.stages.length + ' stages on ' + plan.devices.length +
            ' devices, ' + data.boxes.length + ' nodes drawn'));
    add(area, tiles);
}

// ---- predicted and measured

function ratioCell(planned, measured) {
    if (!(planned > 0) || measured === undefined) return make('td', '', 'number');
    var ratio = measured / planned;
    return make('td', ratio.toFixed(2), 'number' + (Math.abs(ratio - 1) > 0.1 ? ' off' : ''));
}
function pairCells(line, planned, measured, format, isPair) {
    add(line, make('td', planned === undefined ? '' : format(planned), 'number first'));
    if (!isPair) return;
    add(line, make('td', measured === undefined ? '' : format(measured), 'number'),
        ratioCell(planned, measured));
}
// A group of columns: its name, and whether it has measured ones.
function pairHeads(table, names, groups) {
    var top = make('tr'), low = make('tr');
    names.forEach(function (name) { add(top, make('th')); add(low, make('th', name)); });
    groups.forEach(function (group) {
        var head = make('th', group[0], 'group');
        head.colSpan = group[1] ? 3 : 1;
        add(top, head);
        add(low, make('th', 'planned', 'number first'));
        if (group[1]) add(low, make('th', 'measured', 'number'), make('th', 'ratio', 'number'));
    });
    return add(table, top, low);
}
var FIGURES = [['busy in a step', 'busy_seconds', secondsText],
    ['sent in a step', 'sent_bytes', bytesText], ['buffers', 'bytes', bytesText],
    ['process, at its peak', 'process_bytes', bytesText]];
function deviceCell(index) {
    return swatched(make('td'), plan.devices[index].color, plan.devices[index].name);
}
function isKnown(list, key) {
    return list.some(function (entry) { return entry[key] !== undefined; });
}
function showDevices(area) {
    var planned = run.predicted_figures.devices, measured = run.measured_figures.devices;
    var figures = FIGURES.filter(function (figure) {
        return isKnown(planned, figure[1]) || (run.measured && isKnown(measured, figure[1]));
    });
    var isPair = figures.map(function (figure) {
        return run.measured !== undefined && isKnown(measured, figure[1]);
    });
    var places = run.measured && measured.some(function (device) { return device.worker; });
    var table = pairHeads(make('table'), places ? ['device', 'worker'] : ['device'],
        figures.map(function (figure, index) { return [figure[0], isPair[index]]; }));
    plan.devices.forEach(function (device, index) {
        var line = add(make('tr'), deviceCell(index));
        if (places) add(line, make('td', measured[index].worker));
        figures.forEach(function (figure, f) {
            pairCells(line, planned[index][figure[1]], measured[index][figure[1]], figure[2], isPair[f]);
        });
        add(table, line);
    });
    add(section(area, run.measured ? 'Devices, predicted and measured' : 'Devices'), scrolled(table));
}
function showCosts(area) {
    var kinds = [0, 1, 2, 3, 4].filter(function (kind) {
        return run.costs.some(function (cost) { return cost.kind === kind; });
    });
    var table = pairHeads(make('table'), ['stage', 'device'],
        kinds.map(function (kind) { return [KINDS[kind], run.measured !== undefined]; }));
    plan.stages.forEach(function (stage, index) {
        var line = add(make('tr'), make('td', stage.name), deviceCell(stage.device));
        kinds.forEach(function (kind) {
            var found = run.costs.filter(function (cost) {
                return cost.stage === index && cost.kind === kind;
            })[0] || {};
            pairCells(line, found.planned, found.measured, secondsText, run.measured);
        });
        add(table, line);
    });
    add(section(area, 'What the tasks of each stage take'), scrolled(table));
}

// ---- links

function nameOf(device) {
    return device === undefined ? 'the coordinator' : plan.devices[device].name;
}
function bars(link, most) {
    var cell = make('td', null, 'bars');
    ['planned', 'measured'].forEach(function (name) {
        if (!link[name]) return;
        var bar = make('i', null, name);
        bar.style.width = Math.max(1, 100 * link[name].bytes / most) + '%';
        bar.title = name + ': ' + bytesText(link[name].bytes) + ' in ' +
            countText(Math.round(link[name].frames)) + ' tensors';
        add(cell, bar);
    });
    return cell;
}
function tensorsOf(link) {
    var list = (run.measured || run.planned).channels.filter(function (channel) {
        return channel.from === link.from && channel.to === link.to && channel.bytes > 0;
    });
    var items = listed(list, 100, function (channel) {
        return add(make('li', channel.value), make('span', ' ' + bytesText(channel.bytes) +
            (channel.once_a_step ? ' once a step' : ' a microbatch') +
            (channel.backward ? ', backward' : ''), 'soft'));
    });
    return add(make('details'), make('summary', nameOf(link.from) + ' \u2192 ' + nameOf(link.to)), items);
}
function showLinks(area) {
    section(area, 'Traffic of links, in a step');
    var links = run.links.filter(function (link) {
        return (link.planned && link.planned.bytes > 0) || (link.measured && link.measured.bytes > 0);
    });
    if (links.length === 0) {
        add(area, make('p', 'Nothing goes from one device to another.', 'soft'));
        return;
    }
    var most = 1;
    links.forEach(function (link) {
        ['planned', 'measured'].forEach(function (name) {
            if (link[name]) most = Math.max(most, link[name].bytes);
        });
    });
    var isPair = isKnown(links, 'measured');
    var table = pairHeads(make('table', null, 'links'), ['link', ''],
        [['bytes', isPair], ['under way', isPair]]);
    links.forEach(function (link) {
        var p = link.planned || {}, m = link.measured || {};
        var line = add(make('tr'), add(make('td'), tensorsOf(link)), bars(link, most));
        pairCells(line, p.bytes, m.bytes, bytesText, isPair);
        pairCells(line, p.seconds, m.seconds, secondsText, isPair);
        add(table, line);
    });
    add(area, scrolled(table));
    if (run.measured && links.some(function (link) { return !link.measured; })) add(area, make('p',
        'Between devices of one process nothing is moved: what one makes, the other ' +
            'reads where it is.', 'soft'));
}

// ---- the graph of stages: a row for each device, from left to right as data go

var NS = 'http://www.w3.org/2000/svg';
function draw2(element, attributes, text) {
    var made = document.createElementNS(NS, element);
    Object.keys(attributes).forEach(function (key) { made.setAttribute(key, attributes[key]); });
    if (text !== undefined) made.textContent = text;
    return made;
}
function stagePlaces() {
    var rows = [], depth = plan.stages.map(function () { return 0; }), taken = {};
    run.edges.forEach(function (edge) {
        depth[edge.to] = Math.max(depth[edge.to], depth[edge.from] + 1);
    });
    return plan.stages.map(function (stage, index) {
        if (rows.indexOf(stage.device) < 0) rows.push(stage.device);
        var row = rows.indexOf(stage.device), column = depth[index];
        while (taken[row + ':' + column]) column++;
        taken[row + ':' + column] = true;
        return {x: 12 + column * 190, y: 16 + row * 74, row: row};
    });
}
function stageLink(svg, edge, places, most) {
    var a = places[edge.from], b = places[edge.to], x = a.x + 150, y = a.y + 24, low = b.y + 24;
    var bytes = edge.forward_bytes + edge.backward_bytes;
    var skips = b.x - x > 60 && b.row === a.row, bend = Math.max(30, (b.x - x) / 2);
    var arc = skips ? 46 : 0;
    var path = draw2('path', {d: 'M' + x + ' ' + y + 'C' + (x + bend) + ' ' + (y - arc) + ' ' +
        (b.x - bend) + ' ' + (low - arc) + ' ' + b.x + ' ' + low, 'class': 'edge',
    'stroke-width': 1 + 4 * Math.sqrt(bytes / most)});
    add(path, draw2('title', {}, plan.stages[edge.from].name + ' to ' + plan.stages[edge.to].name +
        ': ' + bytesText(edge.forward_bytes) + ' forward, ' + bytesText(edge.backward_bytes) +
        ' backward, for a microbatch'));
    add(svg, path);
    if (skips || b.x - x > 60) return;
    add(svg, draw2('text', {x: (x + b.x) / 2, y: (y + low) / 2 - 5, 'class': 'flow'},
        bytesText(edge.forward_bytes).replace(' ', '\u2009')));
}
function showStageGraph(area) {
    section(area, 'Stages');
    if (plan.stages.length > 400) {
        add(area, make('p', plan.stages.length + ' stages: too many to draw.', 'soft'));
        return;
    }
    var places = stagePlaces(), width = 0, height = 0, most = 1;
    var svg = draw2('svg', {'class': 'stages'});
    run.edges.forEach(function (edge) {
        most = Math.max(most, edge.forward_bytes + edge.backward_bytes);
    });
    run.edges.forEach(function (edge) { stageLink(svg, edge, places, most); });
    plan.stages.forEach(function (stage, index) {
        var p = places[index], device = plan.devices[stage.device], group = draw2('g', {});
        width = Math.max(width, p.x + 162);
        height = Math.max(height, p.y + 60);
        add(group, draw2('title', {}, stage.name + ' on ' + device.name + ', ' + stage.nodes +
            ' nodes, ' + bytesText(stage.parameter_bytes) + ' of parameters'),
        draw2('rect', {x: p.x, y: p.y, width: 150, height: 48, rx: 6, fill: device.color}),
        draw2('text', {x: p.x + 75, y: p.y + 15, 'class': 'name'}, fit(stage.name, 150)),
        draw2('text', {x: p.x + 75, y: p.y + 28}, fit(device.name, 150)),
        draw2('text', {x: p.x + 75, y: p.y + 41}, '\u2192 ' + secondsText(stage.forward_seconds) +
            '   \u2190 ' + secondsText(stage.backward_seconds)));
        add(svg, group);
    });
    svg.setAttribute('width', width);
    svg.setAttribute('height', height);
    svg.setAttribute('viewBox', '0 0 ' + width + ' ' + height);
    add(area, scrolled(svg));
}

// ---- losses: what is trained, and each of several

var LOSS = {width: 820, height: 230, left: 58, right: 12, top: 10, bottom: 26};
function lossRange(series) {
    var low = 0, high = -Infinity;
    series.forEach(function (one) {
        one.points.forEach(function (point) {
            low = Math.min(low, point[1]);
            high = Math.max(high, point[1]);
        });
    });
    return {low: low, high: high > low ? high : low + 1};
}
function lossColor(one) {
    return one.color || 'var(--ink)';
}
function lossLine(one, x, y) {
    var path = draw2('path', {'class': 'line', stroke: lossColor(one),
        d: one.points.map(function (point, index) {
            return (index ? 'L' : 'M') + x(point[0]).toFixed(1) + ' ' + y(point[1]).toFixed(1);
        }).join('')});
    return add(path, draw2('title', {}, one.name));
}
function lossLegend(series) {
    var legend = make('div', null, 'soft');
    series.forEach(function (one) {
        var last = one.points[one.points.length - 1][1];
        add(legend, swatched(make('span', null, 'named'), lossColor(one), one.name + ' ' + last.toPrecision(4)));
    });
    return legend;
}
function showLosses(area) {
    var losses = data.losses;
    if (!losses) return;
    var range = lossRange(losses.series), steps = Math.max(1, losses.last_step - losses.first_step);
    var x = function (step) {
        return LOSS.left + (step - losses.first_step) / steps * (LOSS.width - LOSS.left - LOSS.right);
    };
    var y = function (value) {
        var part = (value - range.low) / (range.high - range.low);
        return LOSS.height - LOSS.bottom - part * (LOSS.height - LOSS.top - LOSS.bottom);
    };
    var svg = draw2('svg', {'class': 'losses', viewBox: '0 0 ' + LOSS.width + ' ' + LOSS.height});
    for (var i = 0; i <= 4; i++) {
        var value = range.low + i / 4 * (range.high - range.low);
        var line = 'M' + LOSS.left + ' ' + y(value) + 'H' + (LOSS.width - LOSS.right);
        var place = {x: LOSS.left - 6, y: y(value) + 4, 'class': 'value'};
        add(svg, draw2('path', {'class': 'grid', d: line}), draw2('text', place, value.toPrecision(3)));
    }
    add(svg, draw2('text', {x: LOSS.left, y: LOSS.height - 8}, 'step ' + losses.first_step),
        draw2('text', {x: LOSS.width - LOSS.right, y: LOSS.height - 8, 'class': 'value'}, String(losses.last_step)));
    losses.series.slice().reverse().forEach(function (one) { add(svg, lossLine(one, x, y)); });
    add(section(area, losses.series.length > 1 ? 'Losses' : 'Loss'), add(make('div', null, 'wide'), svg,
        lossLegend(losses.series)));
}
function showRun() {
    var area = document.getElementById('run');
    if (!run) return;
    if (data.notice) add(area, make('p', data.notice, 'notice'));
    showTiles(area);
    showTimeLine(area);
    showLosses(area);
    showDevices(area);
    showLinks(area);
    showStageGraph(area);
    showCosts(area);
    add(document.body, tip);
}

// ---- the bar

var bar = document.getElementById('bar'), tabs = {};
var input = make('input');
input.id = 'search';
input.type = 'search';
input.placeholder = 'search nodes, operators';
input.addEventListener('input', function () { showTab('graph'); search(input.value); });
input.addEventListener('keydown', function (event) {
    if (event.key === 'Enter') next(event.shiftKey ? -1 : 1);
    if (event.key === 'Escape') { input.value = ''; search(''); input.blur(); }
});
var choice = make('select');
Object.keys(modes).forEach(function (name) {
    if (!modes[name].there) return;
    var option = make('option', modes[name].name);
    option.value = name;
    add(choice, option);
});
choice.value = mode;
choice.addEventListener('change', function () { mode = choice.value; recolor(); redraw(); });
function button(text, title, action) {
    var made = make('button', text);
    made.title = title;
    made.addEventListener('click', action);
    return made;
}
function showTab(name) {
    var wasGraph = document.body.dataset.tab === 'graph';
    document.body.dataset.tab = name;
    Object.keys(tabs).forEach(function (tab) {
        tabs[tab].setAttribute('aria-pressed', tab === name ? 'true' : 'false');
    });
    if (name === 'graph' && !wasGraph && !isFitted) fitAll();
    redraw();
    redrawTime();
}
var facts = countText(boxes.length) + ' boxes, ' + countText(arrows.length) + ' arrows';
if (plan) facts = plan.devices.length + ' devices, ' + plan.stages.length +
    ' stages, step ' + secondsText(plan.step_seconds) + ', bubble ' +
    (100 * plan.bubble).toFixed(1) + ' %; ' + facts;
add(bar, make('h1', data.title));
bar.firstChild.title = data.title;
if (plan && plan.set) facts = 'set ' + plan.set.join(', ') + '; ' + facts;
if (run) {
    tabs.run = button(run.measured ? 'Run' : 'Plan', 'time line, memory, traffic',
        function () { showTab('run'); });
    tabs.graph = button('Graph', 'the nodes of the model', function () { showTab('graph'); });
    add(bar, add(make('span', null, 'tabs'), tabs.run, tabs.graph));
}
add(bar, make('span', facts, 'facts'), input, add(make('span', null, 'moving'), choice,
    button('+', 'nearer', function () { zoomMiddle(1.4); }),
    button('\u2212', 'farther', function () { zoomMiddle(1 / 1.4); }),
    button('whole', 'the whole graph', fitAll)));
document.addEventListener('keydown', function (event) {
    if (event.target !== input && event.key === '/') { event.preventDefault(); input.focus(); }
});

// page.html#NAME shows the node of that name
function follow() {
    var name = '';
    try { name = decodeURIComponent(location.hash.slice(1)); } catch (error) { name = ''; }
    var index = boxes.findIndex(function (box) { return box.name === name; });
    if (name === '' || index < 0) return;
    showTab('graph');
    select(index);
    center(index);
}
window.addEventListener('hashchange', follow);
window.addEventListener('resize', redrawTime);
window.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', function () {
    theme.clear();
    recolor();
    redraw();
    redrawTime();
});
recolor();
showSide();
showRun();
showTab(run ? 'run' : 'graph');
follow();
var begin = performance.now();
draw();
document.body.dataset.milliseconds = Math.ceil(performance.now() - begin);
document.body.dataset.boxes = boxes.length;
