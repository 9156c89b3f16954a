// ---- the side: the node, what was found, the plan

function row(table, name, value) {
    if (value === undefined || value === null || value === '') return;
    add(table, add(make('tr'), make('th', name),
        value instanceof Node ? add(make('td'), value) : make('td', value)));
}
function link(index, text) {
    var made = make('a', text || boxes[index].name);
    made.addEventListener('click', function () { select(index); center(index); });
    return made;
}
function neighbours(title, list, end) {
    if (list.length === 0) return;
    var items = make('ul');
    list.slice(0, 50).forEach(function (index) {
        var arrow = arrows[index];
        add(items, add(make('li'), link(arrow[end]),
            make('span', arrow.shape ? ' ' + arrow.shape : '', 'soft')));
    });
    var rest = list.length - 50;
    if (rest > 0) add(items, make('li', 'and ' + rest + ' more', 'soft'));
    add(side, make('h2', title), items);
}
function showNode() {
    if (selected < 0) {
        add(side, make('p', 'Click a node to see what it is, what it costs and where it runs. ' +
            'Drag to move, turn the wheel to zoom, / to search.', 'soft'));
        return;
    }
    var box = boxes[selected], table = make('table');
    add(side, make('h2', box.name), table);
    row(table, 'operator', box.op);
    row(table, 'shape', box.shape);
    if (box.seconds !== undefined)
        row(table, 'cost', secondsText(box.seconds) + ' a microbatch (' + box.source + ')');
    if (box.bytes !== undefined) row(table, 'bytes added', bytesText(box.bytes));
    if (box.stage !== undefined) {
        row(table, 'device', plan.devices[plan.stages[box.stage].device].name);
        row(table, 'stage', plan.stages[box.stage].name);
    }
    row(table, 'reason', box.reason);
    if (box.color) {
        row(table, 'flops', countText(box.flops) + ' (counted)');
        row(table, 'bytes moved', bytesText(box.bytes_moved) + ' (counted)');
        if (box.parameter_bytes > 0) row(table, 'parameters', bytesText(box.parameter_bytes));
    }
    neighbours('reads', box.from, 'from');
    neighbours('read by', box.to, 'to');
}
function showMatches() {
    var wanted = document.getElementById('search').value;
    if (wanted === '') return;
    var items = make('ul');
    matches.slice(0, 30).forEach(function (index) {
        add(items, add(make('li'), link(index), make('span', ' ' + boxes[index].op, 'soft')));
    });
    if (matches.length > 30) add(items, make('li', 'and ' + (matches.length - 30) + ' more', 'soft'));
    add(side, make('h2', matches.length + ' found'), items);
}
function addCells(rowMade, values, kind) {
    values.forEach(function (value, index) {
        add(rowMade, make(kind, value, index > 0 ? 'number' : ''));
    });
    return rowMade;
}
function showStages() {
    var table = make('table');
    var heads = ['stage', 'forward', 'backward', 'update', 'in flight'];
    add(table, addCells(make('tr'), heads, 'th'));
    plan.stages.forEach(function (stage) {
        var swatch = make('i', null, 'swatch');
        swatch.style.background = plan.devices[stage.device].color;
        var made = addCells(make('tr'), [stage.name, secondsText(stage.forward_seconds),
            secondsText(stage.backward_seconds), secondsText(stage.update_seconds), stage.in_flight], 'td');
        made.firstChild.insertBefore(swatch, made.firstChild.firstChild);
        add(table, made);
    });
    add(side, make('h2', 'Stages, for a microbatch'), table);
}
var MEMORY = {'parameters': '#3b73b9', 'gradients': '#6fa3dc', 'optimizer state': '#9d8bd0',
    'activations': '#e08a1e', 'receive buffers': '#e3c53f', 'workspace': '#8a929c'};
function showMemory() {
    add(side, make('h2', 'Memory at its peak'));
    var most = 0;
    plan.devices.forEach(function (device) {
        device.total = 0;
        Object.keys(MEMORY).forEach(function (kind) { device.total += device.memory[kind]; });
        most = Math.max(most, device.total);
    });
    plan.devices.forEach(function (device) {
        var whole = device.bytes_limit || most || 1, stack = make('div', null, 'stack');
        Object.keys(MEMORY).forEach(function (kind) {
            var part = make('i');
            part.style.width = 100 * device.memory[kind] / Math.max(whole, device.total) + '%';
            part.style.background = MEMORY[kind];
            part.title = kind + ': ' + bytesText(device.memory[kind]);
            add(stack, part);
        });
        var caption = add(make('div', null, 'caption'), make('span', device.name),
            make('span', bytesText(device.total) +
                (device.bytes_limit ? ' of ' + bytesText(device.bytes_limit) : ''), 'soft'));
        add(side, add(make('div', null, 'memory'), caption, stack));
    });
    var legend = make('div', null, 'soft');
    Object.keys(MEMORY).forEach(function (kind) {
        var swatch = make('i', null, 'swatch');
        swatch.style.background = MEMORY[kind];
        add(legend, add(make('span'), swatch, document.createTextNode(kind + '  ')));
    });
    add(side, legend);
}
function showPlan() {
    var table = make('table');
    add(side, make('h2', 'Plan'), table);
    row(table, 'strategy', plan.strategy + ' for ' + plan.objective);
    var unit = plan.objective === 'traffic' ? bytesText : secondsText;
    row(table, 'value', unit(plan.value) + ', at least ' + unit(plan.lower_bound));
    row(table, 'schedule', plan.schedule + ', ' + plan.microbatches + ' microbatches of ' +
        plan.microbatch_size);
    row(table, 'step', secondsText(plan.step_seconds) + ', bubble ' + (100 * plan.bubble).toFixed(1) + ' %');
    row(table, 'costs', plan.measured + ' measured, ' + plan.stated + ' stated, ' +
        plan.assumed + ' assumed');
}
function showSide() {
    side.textContent = '';
    if (selected >= 0) showNode();
    showMatches();
    if (selected < 0) showNode();
    if (plan) { showPlan(); showStages(); showMemory(); }
    side.scrollTop = 0;
}
function select(index) {
    selected = index;
    showSide();
    redraw();
}
function search(text) {
    var wanted = text.toLowerCase();
    matches = [];
    matchAt = -1;
    selected = -1;
    if (wanted !== '') boxes.forEach(function (box, index) {
        if (box.key.indexOf(wanted) >= 0) matches.push(index);
    });
    showSide();
    redraw();
}
function next(step) {
    if (matches.length === 0) return;
    matchAt = (matchAt + step + matches.length) % matches.length;
    select(matches[matchAt]);
    center(matches[matchAt]);
}
