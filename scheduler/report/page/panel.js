// ---- the side: the node, what was found, the plan

function row(table, name, value) {
    if (value === undefined || value === null || value === '') return;
    var head = make('th', name);
    head.scope = 'row';
    add(table, add(make('tr'), head, value instanceof Node ? add(make('td'), value) : make('td', value)));
}
function link(index, text) {
    var made = make('button', text || boxes[index].name, 'link');
    made.type = 'button';
    made.addEventListener('click', function () { goTo(index); canvas.focus(); });
    return made;
}
function neighbours(title, list, end) {
    if (list.length === 0) return;
    add(side, make('h2', title), listed(list, 50, function (index) {
        var shape = arrows[index].shape;
        return add(make('li'), link(arrows[index][end]), make('span', shape ? ' ' + shape : '', 'soft'));
    }));
}
function showNode() {
    if (selected < 0) {
        add(side, make('p', 'Click a node to see what it is, what it costs and where it runs. ' +
            'Drag to move, turn the wheel to zoom. By keys: / searches, arrows walk, ? lists all.', 'soft'));
        return;
    }
    var box = boxes[selected], table = make('table');
    add(side, make('h2', box.name), table);
    if (level === 'modules' && box.color) {
        var open = button('show its ' + (box.nodes || 1) + ' nodes', 'show the nodes of ' + box.name, function () {
            openModule(selected);
            canvas.focus();
        });
        add(side, open);
    }
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
    add(side, make('h2', matches.length + ' found'), listed(matches, 30, function (index) {
        return add(make('li'), link(index), make('span', ' ' + boxes[index].op, 'soft'));
    }));
}
function addCells(line, values, kind) {
    values.forEach(function (value) {
        var cell = add(line, make(kind, value, 'number')).lastChild;
        if (kind === 'th') cell.scope = 'col';
    });
    return line;
}
function showStages() {
    var table = make('table');
    add(table, addCells(add(make('tr'), make('th', 'stage')), ['forward', 'backward', 'update', 'in flight'], 'th'));
    plan.stages.forEach(function (stage) {
        var name = swatched(make('td'), plan.devices[stage.device].color, stage.name);
        add(table, addCells(add(make('tr'), name), [secondsText(stage.forward_seconds),
            secondsText(stage.backward_seconds), secondsText(stage.update_seconds), stage.in_flight], 'td'));
    });
    add(side, make('h2', 'Stages, for a microbatch'), table);
}
var MEMORY = ['parameters', 'gradients', 'optimizer_state', 'activations', 'receive_buffers', 'workspace',
    'saved'];
function memoryColor(kind) { return color('memory-' + kind.replace('_', '-')); }
function memoryName(kind) { return kind.replace('_', ' '); }
function showMemory() {
    add(side, make('h2', 'Memory at its peak'));
    var most = 0;
    plan.devices.forEach(function (device) {
        device.total = 0;
        MEMORY.forEach(function (kind) { device.total += device.memory[kind]; });
        most = Math.max(most, device.total);
    });
    plan.devices.forEach(function (device) {
        var whole = device.bytes_limit || most || 1, stack = make('div', null, 'stack'), parts = [];
        MEMORY.forEach(function (kind) {
            var part = make('i');
            part.style.width = 100 * device.memory[kind] / Math.max(whole, device.total) + '%';
            part.style.background = memoryColor(kind);
            if (device.memory[kind] > 0) parts.push(memoryName(kind) + ': ' + bytesText(device.memory[kind]));
            add(stack, part);
        });
        told(stack, device.name + '\n' + parts.join('\n'));
        var caption = add(make('div', null, 'caption'), make('span', device.name),
            make('span', bytesText(device.total) +
                (device.bytes_limit ? ' of ' + bytesText(device.bytes_limit) : ''), 'soft'));
        add(side, add(make('div', null, 'memory'), caption, stack));
    });
    var legend = make('div', null, 'soft');
    MEMORY.forEach(function (kind) {
        add(legend, swatched(make('span'), memoryColor(kind), memoryName(kind) + '  '));
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
function sayNode(index) {
    var box = boxes[index], text = box.name + ', ' + box.op + (box.shape ? ', ' + box.shape : '');
    if (box.stage !== undefined) text += ', on ' + plan.devices[plan.stages[box.stage].device].name;
    say(text + '; reads ' + box.from.length + ', read by ' + box.to.length);
}
function select(index) {
    selected = index;
    showSide();
    redraw();
}
function search(text) {
    var wanted = text.toLowerCase();
    if (wanted !== '') useLevel('nodes');
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
    goTo(matches[matchAt]);
}
