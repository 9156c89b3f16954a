// ---- the overview of a plan and its run

function tile(name, value, rest) {
    return add(make('div', null, 'tile'), make('span', name), make('b', value.replace(/_/g, '_\u200b')),
        make('em', rest)); // long names may break behind a "_"
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
    function head(row, name, className) {
        var made = make('th', name, className);
        made.scope = 'col';
        add(row, made);
        return made;
    }
    names.forEach(function (name) { add(top, make('td')); head(low, name || 'planned above measured'); });
    groups.forEach(function (group) {
        var over = head(top, group[0], 'group');
        over.scope = 'colgroup';
        over.colSpan = group[1] ? 3 : 1;
        head(low, 'planned', 'number first');
        if (!group[1]) return;
        head(low, 'measured', 'number');
        head(low, 'ratio', 'number');
    });
    return add(table, top, low);
}
var FIGURES = [['busy in a step', 'busy_seconds', secondsText],
    ['sent in a step', 'sent_bytes', bytesText], ['buffers', 'bytes', bytesText],
    ['process, at its peak', 'process_bytes', bytesText]];
function deviceCell(index, element) {
    return swatched(make(element || 'td'), plan.devices[index].color, plan.devices[index].name);
}
function rowHead(cell) {
    cell.scope = 'row';
    return cell;
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
        var line = add(make('tr'), rowHead(deviceCell(index, 'th')));
        if (places) add(line, make('td', measured[index].worker));
        figures.forEach(function (figure, f) {
            pairCells(line, planned[index][figure[1]], measured[index][figure[1]], figure[2], isPair[f]);
        });
        add(table, line);
    });
    var title = run.measured ? 'Devices, predicted and measured' : 'Devices';
    add(section(area, title), scrolled(table, title));
}
function showCosts(area) {
    var kinds = [0, 1, 2, 3, 4].filter(function (kind) {
        return run.costs.some(function (cost) { return cost.kind === kind; });
    });
    var table = pairHeads(make('table'), ['stage', 'device'],
        kinds.map(function (kind) { return [KINDS[kind], run.measured !== undefined]; }));
    plan.stages.forEach(function (stage, index) {
        var line = add(make('tr'), rowHead(make('th', stage.name)), deviceCell(stage.device));
        kinds.forEach(function (kind) {
            var found = run.costs.filter(function (cost) {
                return cost.stage === index && cost.kind === kind;
            })[0] || {};
            pairCells(line, found.planned, found.measured, secondsText, run.measured);
        });
        add(table, line);
    });
    add(section(area, 'What the tasks of each stage take'), scrolled(table, 'Tasks of each stage'));
}

// ---- links

function nameOf(device) {
    return device === undefined ? 'the coordinator' : plan.devices[device].name;
}
function bars(link, most) {
    var cell = make('td', null, 'bars'), texts = [];
    var inside = make('div');
    ['planned', 'measured'].forEach(function (name) {
        if (!link[name]) return;
        var bar = make('i', null, name);
        bar.style.width = Math.max(1, 100 * link[name].bytes / most) + '%';
        texts.push(name + ': ' + bytesText(link[name].bytes) + ' in ' +
            countText(Math.round(link[name].frames)) + ' tensors');
        add(inside, bar);
    });
    told(inside, texts.join('\n'));
    return add(cell, inside);
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
        var line = add(make('tr'), rowHead(add(make('th'), tensorsOf(link))), bars(link, most));
        pairCells(line, p.bytes, m.bytes, bytesText, isPair);
        pairCells(line, p.seconds, m.seconds, secondsText, isPair);
        add(table, line);
    });
    add(area, scrolled(table, 'Traffic of links'));
    if (run.measured && links.some(function (link) { return !link.measured; })) add(area, make('p',
        'Between devices of one process nothing is moved: what one makes, the other ' +
            'reads where it is.', 'soft'));
}

// ---- the graph of stages: a row for each device, from left to right as data go

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
    told(path, plan.stages[edge.from].name + ' to ' + plan.stages[edge.to].name +
        ': ' + bytesText(edge.forward_bytes) + ' forward, ' + bytesText(edge.backward_bytes) +
        ' backward, for a microbatch');
    add(svg, path);
    if (skips || b.x - x > 60) return path;
    add(svg, draw2('text', {x: (x + b.x) / 2, y: (y + low) / 2 - 5, 'class': 'flow'},
        bytesText(edge.forward_bytes).replace(' ', '\u2009')));
    return path;
}
function showStageGraph(area) {
    section(area, 'Stages');
    if (plan.stages.length > 400) {
        add(area, make('p', plan.stages.length + ' stages: too many to draw.', 'soft'));
        return;
    }
    var places = stagePlaces(), width = 0, height = 0, most = 1, parts = [];
    var svg = draw2('svg', {'class': 'stages', role: 'group', 'aria-label':
        plan.stages.length + ' stages, and what goes from one to another'});
    run.edges.forEach(function (edge) {
        most = Math.max(most, edge.forward_bytes + edge.backward_bytes);
    });
    var links = run.edges.map(function (edge) { return stageLink(svg, edge, places, most); });
    plan.stages.forEach(function (stage, index) {
        var p = places[index], device = plan.devices[stage.device];
        var group = told(draw2('g', {}), stage.name + ' on ' + device.name + ', ' + stage.nodes +
            ' nodes, ' + bytesText(stage.parameter_bytes) + ' of parameters');
        width = Math.max(width, p.x + 162);
        height = Math.max(height, p.y + 60);
        add(group, draw2('rect', {x: p.x, y: p.y, width: 150, height: 48, rx: 6, fill: device.color}),
            draw2('text', {x: p.x + 75, y: p.y + 15, 'class': 'name'}, fit(stage.name, 150)),
            draw2('text', {x: p.x + 75, y: p.y + 28}, fit(device.name, 150)),
            draw2('text', {x: p.x + 75, y: p.y + 41}, '\u2192 ' + secondsText(stage.forward_seconds) +
                '   \u2190 ' + secondsText(stage.backward_seconds)));
        add(svg, group);
        parts.push(group);
    });
    roving(parts.concat(links));
    svg.setAttribute('width', width);
    svg.setAttribute('height', height);
    svg.setAttribute('viewBox', '0 0 ' + width + ' ' + height);
    add(area, scrolled(svg, 'Stages'));
}

// Without a plan there are the curves alone.
function showRun() {
    var area = document.getElementById('run');
    add(document.body, tip);
    if (data.notice) add(area, make('p', data.notice, 'notice'));
    if (data.is_live) showLive(area);
    if (!run) {
        showCurves(area);
        return;
    }
    if (data.is_live) section(area, 'Plan');
    showTiles(area);
    showTimeLine(area);
    showCurves(area);
    showDevices(area);
    showLinks(area);
    showStageGraph(area);
    showCosts(area);
}
