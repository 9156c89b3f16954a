// ---- the time line: a row planned and a row measured for each device, on one axis

var run = data.run || null;
var KINDS = ['forward', 'backward', 'backward, inputs', 'backward, weights', 'update'];
var KIND_COLORS = KINDS.map(function (kind) { return color(kind.replace(', ', '-')); });
var LEFT = 66, RIGHT = 10, TASK = 20, SEND = 5, GAP = 6, STRIP = 36; // compact rows have others
var lanes = [], sides = [], span = {from: 0, to: 1, whole: 1}, hover = null, cursor = -1;
var timeArea = null;

// An event of a flat list: where it begins in it.
function eventAt(list, size, offset, time) {
    var low = 0, high = list.length / size;
    while (low < high) {
        var middle = (low + high) >> 1;
        if (list[middle * size + offset] <= time) low = middle + 1; else high = middle;
    }
    return low - 1;
}
function stepOf(side) { return side.steps[side.chosen]; }
function peakOf(levels) {
    var most = 0, count = 0;
    for (var i = 0; i < levels.length; i += 3) {
        most = Math.max(most, levels[i + 1]);
        count = Math.max(count, levels[i + 2]);
    }
    return {bytes: most, count: count};
}
function busyOf(step, device) {
    var tasks = step.devices[device].tasks, sum = 0;
    for (var i = 0; i < tasks.length; i += 5) sum += tasks[i + 4] - tasks[i + 3];
    return step.length > 0 ? sum / step.length : 0;
}
function xOf(time, width) {
    return LEFT + (time - span.from) / (span.to - span.from) * (width - LEFT - RIGHT);
}
function timeOf(x, width) {
    return span.from + (x - LEFT) / (width - LEFT - RIGHT) * (span.to - span.from);
}
function timeText(time) { return secondsText(time / 1e9); }

// The rows that a lane has: a compact one has what was measured, or else is planned.
function shownSides() { return isCompact ? sides.slice(-1) : sides; }
function hasMemory(lane) { return !isCompact && lane.most > 0; }
function laneHeight(lane) {
    return shownSides().length * (TASK + SEND + GAP) + (hasMemory(lane) ? STRIP + 6 : 0) + (isCompact ? 1 : 4);
}
function drawTasks(c, lane, side, top, width) {
    var tasks = stepOf(side).devices[lane.device].tasks;
    var first = Math.max(0, eventAt(tasks, 5, 3, span.from));
    c.textAlign = 'center';
    c.font = '10px system-ui,sans-serif';
    for (var i = first * 5; i < tasks.length && tasks[i + 3] <= span.to; i += 5) {
        var x = xOf(tasks[i + 3], width), end = xOf(tasks[i + 4], width);
        if (end < LEFT) continue;
        x = Math.max(x, LEFT);
        end = Math.min(end, width - RIGHT);
        var wide = end - x;
        c.fillStyle = KIND_COLORS[tasks[i]];
        c.fillRect(x, top, wide > 3 ? wide - 0.8 : Math.max(wide, 1), TASK);
        if (lane.several && wide > 3) {
            c.fillStyle = stageColors[tasks[i + 1]];
            c.fillRect(x, top, wide - 0.8, 3);
        }
        var label = '' + tasks[i + 2], both = tasks[i + 1] + ':' + label;
        if (tasks[i] === 4) continue;
        if (lane.several && both.length * 6 + 3 < wide) label = both;
        if (label.length * 6 + 3 > wide) continue;
        c.fillStyle = color('digit');
        c.fillText(label, x + wide / 2, top + TASK / 2 + (lane.several ? 5 : 3.5));
    }
}
function drawSends(c, lane, side, top, width) {
    var sends = stepOf(side).devices[lane.device].sends;
    c.fillStyle = color('transfer');
    for (var i = 0; i < sends.length; i += 4) {
        var x = Math.max(xOf(sends[i + 2], width), LEFT);
        var end = Math.min(xOf(sends[i + 3], width), width - RIGHT);
        if (end >= LEFT && x <= width - RIGHT) c.fillRect(x, top, Math.max(end - x, 1), SEND - 1);
    }
}
function levelPath(c, lane, side, top, width, isArea) {
    var levels = stepOf(side).devices[lane.device].levels, low = top + STRIP, y = low;
    function yOf(bytes) { return low - bytes / lane.most * (STRIP - 2); }
    c.beginPath();
    if (levels.length === 0) return;
    y = yOf(levels[1]);
    c.moveTo(xOf(0, width), isArea ? low : y);
    c.lineTo(xOf(0, width), y);
    for (var i = 0; i < levels.length; i += 3) {
        var x = xOf(levels[i], width);
        c.lineTo(x, y);
        y = yOf(levels[i + 1]);
        c.lineTo(x, y);
    }
    c.lineTo(xOf(stepOf(side).length, width), y);
    if (isArea) c.lineTo(xOf(stepOf(side).length, width), low);
}
function drawLevel(c, lane, bytes, top, width, stroke) {
    var y = top + STRIP - bytes / lane.most * (STRIP - 2);
    c.strokeStyle = stroke;
    c.setLineDash([]);
    c.beginPath();
    c.moveTo(LEFT, y);
    c.lineTo(width - RIGHT, y);
    c.stroke();
}
function drawMemory(c, lane, top, width) {
    var last = sides[sides.length - 1];
    c.save();
    c.beginPath();
    c.rect(LEFT, top - 1, width - LEFT - RIGHT, STRIP + 2);
    c.clip();
    c.fillStyle = color('row');
    c.fillRect(LEFT, top, width - LEFT - RIGHT, STRIP);
    levelPath(c, lane, last, top, width, true);
    c.fillStyle = color('area');
    c.fill();
    levelPath(c, lane, last, top, width, false);
    c.strokeStyle = color('mark');
    c.lineWidth = 1.2;
    c.stroke();
    if (sides.length > 1) {
        levelPath(c, lane, sides[0], top, width, false);
        c.strokeStyle = color('soft');
        c.setLineDash([4, 3]);
        c.stroke();
    }
    drawLevel(c, lane, lane.reserved, top, width, color('soft'));
    if (lane.limit > 0 && lane.limit <= lane.most) drawLevel(c, lane, lane.limit, top, width, color('warning'));
    c.restore();
}
function drawHover(c, lane, width) {
    shownSides().forEach(function (side, index) {
        if (!hover) return;
        var tasks = stepOf(side).devices[lane.device].tasks, top = 2 + index * (TASK + SEND + GAP);
        for (var i = 0; i < tasks.length; i += 5) {
            if (tasks[i + 1] !== hover.stage || tasks[i + 2] !== hover.microbatch) continue;
            if (tasks[i] !== hover.kind) continue;
            var x = Math.max(LEFT, xOf(tasks[i + 3], width));
            var end = Math.min(width - RIGHT, xOf(tasks[i + 4], width));
            if (end < x) continue;
            c.strokeStyle = color('ink');
            c.lineWidth = 2;
            c.strokeRect(x - 1, top - 1, Math.max(end - x, 1) + 2, TASK + 2);
        }
    });
    if (cursor < LEFT || cursor > width - RIGHT) return;
    c.fillStyle = color('ink');
    c.fillRect(cursor, 0, 1, laneHeight(lane));
}
function sized(canvas, height) {
    var ratio = window.devicePixelRatio || 1, width = canvas.parentNode.clientWidth;
    canvas.style.height = height + 'px';
    var across = Math.round(width * ratio), down = Math.round(height * ratio);
    if (canvas.width !== across || canvas.height !== down) {
        canvas.width = across;
        canvas.height = down;
    }
    var c = canvas.getContext('2d');
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.clearRect(0, 0, width, height);
    return c;
}
function drawLane(lane) {
    var c = sized(lane.canvas, laneHeight(lane)), width = lane.canvas.parentNode.clientWidth;
    var top = 2;
    shownSides().forEach(function (side) {
        c.fillStyle = color('row');
        c.fillRect(LEFT, top, width - LEFT - RIGHT, TASK);
        drawTasks(c, lane, side, top, width);
        drawSends(c, lane, side, top + TASK + 2, width);
        if (!isCompact) rowLabel(c, side.name, top + TASK / 2 + 3.5);
        c.fillStyle = color('soft');
        var end = xOf(stepOf(side).length, width);
        if (hasMemory(lane) && end >= LEFT && end <= width - RIGHT) c.fillRect(end, top - 2, 1, TASK + SEND + GAP - 1);
        top += TASK + SEND + GAP;
    });
    if (hasMemory(lane)) {
        drawMemory(c, lane, top, width);
        rowLabel(c, 'memory', top + STRIP / 2 + 3.5);
    }
    drawHover(c, lane, width);
}
function rowLabel(c, text, y) {
    c.fillStyle = color('soft');
    c.font = '11px system-ui,sans-serif';
    c.textAlign = 'right';
    c.fillText(text, LEFT - 7, y);
}
function drawAxis() {
    var canvas = timeArea.axis, c = sized(canvas, 24), width = canvas.parentNode.clientWidth;
    var length = span.to - span.from;
    var step = Math.pow(10, Math.floor(Math.log10(length / 4)));
    var room = Math.max(2, (width - LEFT - RIGHT) / 72);
    while (length / step > room) step *= length / step > 2.5 * room ? 5 : 2;
    c.font = '11px system-ui,sans-serif';
    c.textAlign = 'center';
    for (var i = Math.ceil(span.from / step); i * step <= span.to; i++) {
        var x = xOf(i * step, width);
        c.fillStyle = color('line');
        c.fillRect(x, 17, 1, 7);
        c.fillStyle = color('soft');
        c.fillText(i === 0 ? '0' : timeText(i * step), Math.min(x, width - 26), 13);
    }
}
var timeIsDue = false;
function redrawTime() {
    if (timeIsDue || !timeArea || document.body.dataset.tab !== 'run') return;
    timeIsDue = true;
    requestAnimationFrame(function () {
        timeIsDue = false;
        drawAxis();
        lanes.forEach(function (lane) { if (lane.seen) drawLane(lane); });
    });
}

// ---- what is under the mouse

function rowAt(y) {
    var index = Math.floor((y - 2) / (TASK + SEND + GAP));
    if (y < 2 || index >= shownSides().length) return null;
    return {side: shownSides()[index], isSend: y - 2 - index * (TASK + SEND + GAP) > TASK};
}
function counterpart(task, side) {
    var tasks = stepOf(side).devices[task.device].tasks;
    for (var i = 0; i < tasks.length; i += 5) {
        if (tasks[i] === task.kind && tasks[i + 1] === task.stage && tasks[i + 2] === task.microbatch)
            return tasks[i + 4] - tasks[i + 3];
    }
    return -1;
}
function taskText(lane, row, time) {
    var tasks = stepOf(row.side).devices[lane.device].tasks, i = 5 * eventAt(tasks, 5, 3, time);
    if (i < 0 || tasks[i + 4] < time) return null;
    hover = {device: lane.device, kind: tasks[i], stage: tasks[i + 1], microbatch: tasks[i + 2]};
    var text = KINDS[hover.kind] + ' of ' + plan.stages[hover.stage].name;
    text += hover.kind === 4 ? '' : ', microbatch ' + hover.microbatch;
    text += '\n' + row.side.name + ': ' + timeText(tasks[i + 4] - tasks[i + 3]) + ', from ' +
        timeText(tasks[i + 3]) + ' to ' + timeText(tasks[i + 4]);
    sides.forEach(function (other) {
        var length = other === row.side ? -1 : counterpart(hover, other);
        if (length >= 0) text += '\n' + other.name + ': ' + timeText(length);
    });
    return text;
}
function sendText(lane, row, time) {
    var sends = stepOf(row.side).devices[lane.device].sends, found = -1;
    for (var i = 0; i < sends.length; i += 4) {
        if (sends[i + 2] <= time && sends[i + 3] >= time) found = i;
    }
    return found < 0 ? null : sendTextAt(row, sends, found);
}
function sendTextAt(row, sends, found) {
    var channel = row.side.channels[sends[found]];
    return channel.value + '\nto ' + (channel.to === undefined ? 'the coordinator' :
        plan.devices[channel.to].name) + ', ' + bytesText(sends[found + 1]) + ', ' +
            timeText(sends[found + 3] - sends[found + 2]);
}
function memoryText(lane, time) {
    return sides.map(function (side) {
        var levels = stepOf(side).devices[lane.device].levels, i = 3 * eventAt(levels, 3, 0, time);
        if (i < 0 || time > stepOf(side).length) return side.name + ': -';
        return side.name + ': ' + bytesText(levels[i + 1]) + ', ' + levels[i + 2] +
            (levels[i + 2] === 1 ? ' microbatch' : ' microbatches') + ' in flight';
    }).join('\n');
}
function hoverLane(lane, event) {
    var width = lane.canvas.parentNode.clientWidth, time = timeOf(event.offsetX, width);
    var row = rowAt(event.offsetY), text = null;
    cursor = event.offsetX;
    hover = null;
    if (event.offsetX >= LEFT && event.offsetX <= width - RIGHT) {
        if (row === null) text = hasMemory(lane) ? memoryText(lane, time) : null;
        else text = (row.isSend ? sendText : taskText)(lane, row, time);
    }
    showTip(event.clientX, event.clientY, text);
    redrawTime();
}
function zoomTime(factor, at) {
    var length = Math.min(span.whole, Math.max(span.whole / 2000, (span.to - span.from) / factor));
    moveTime(at - (at - span.from) * length / (span.to - span.from), length);
}
function moveTime(from, length) {
    span.from = Math.max(0, Math.min(from, span.whole - length));
    span.to = span.from + length;
    redrawTime();
}
function listenTo(lane) {
    var canvas = lane.canvas, dragged = -1;
    canvas.addEventListener('pointermove', function (event) {
        var width = canvas.parentNode.clientWidth;
        if (dragged >= 0) {
            var moved = timeOf(dragged, width) - timeOf(event.offsetX, width);
            dragged = event.offsetX;
            moveTime(span.from + moved, span.to - span.from);
        }
        hoverLane(lane, event);
    });
    canvas.addEventListener('pointerdown', function (event) {
        if (event.pointerType !== 'mouse' && span.to - span.from >= span.whole) return;
        dragged = event.offsetX;
        canvas.setPointerCapture(event.pointerId);
    });
    ['pointerup', 'pointercancel'].forEach(function (name) {
        canvas.addEventListener(name, function () { dragged = -1; });
    });
    canvas.addEventListener('pointerleave', function () {
        cursor = -1;
        hover = null;
        showTip(0, 0, null);
        redrawTime();
    });
    canvas.addEventListener('wheel', function (event) {
        if (!event.ctrlKey && !event.shiftKey) return;
        event.preventDefault();
        var amount = event.deltaY || event.deltaX;
        zoomTime(Math.exp(-amount * 0.002), timeOf(event.offsetX, canvas.parentNode.clientWidth));
    }, {passive: false});
    canvas.addEventListener('dblclick', function () { moveTime(0, span.whole); });
}

// ---- the same by keys: a task, transfer or change of memory at a time

var spot = {lane: 0, row: 0, index: 0};

// The rows of a lane, from above: of each side its tasks and its transfers, then memory.
function rowsOf(lane) {
    var rows = [];
    shownSides().forEach(function (side) {
        var device = stepOf(side).devices[lane.device];
        rows.push({side: side, isSend: false, list: device.tasks, size: 5, from: 3, to: 4, name: side.name + ' tasks'});
        rows.push({side: side, isSend: true, list: device.sends, size: 4, from: 2, to: 3,
            name: side.name + ' transfers'});
    });
    if (hasMemory(lane)) rows.push({side: null, list: stepOf(sides[sides.length - 1]).devices[lane.device].levels,
        size: 3, from: 0, to: 0, name: 'memory'});
    return rows;
}
// Where a row is in its lane, in pixels.
function rowTop(index) {
    var top = 2 + (index >> 1) * (TASK + SEND + GAP);
    return top + (index % 2 === 1 ? TASK + 2 : 0);
}
function spotText(lane, row, at) {
    if (row.list.length === 0) return 'none';
    var time = row.list[at + row.from];
    if (row.side === null) return timeText(time) + '\n' + memoryText(lane, time);
    return row.isSend ? sendTextAt(row, row.list, at) : taskText(lane, row, (time + row.list[at + row.to]) / 2);
}
function showSpot(moves) {
    var lane = lanes[spot.lane], rows = rowsOf(lane), row = rows[spot.row], count = row.list.length / row.size;
    spot.index = Math.max(0, Math.min(count - 1, spot.index));
    var at = spot.index * row.size, begin = row.list[at + row.from] || 0, end = row.list[at + row.to] || 0;
    var length = span.to - span.from;
    if (moves && (begin < span.from || end > span.to)) moveTime((begin + end) / 2 - length / 2, length);
    hover = null;
    var text = spotText(lane, row, at) || '', place = lane.canvas.getBoundingClientRect();
    cursor = Math.max(LEFT, xOf((begin + end) / 2, place.width));
    showTip(place.left + cursor, place.top + rowTop(spot.row) + (row.isSend ? SEND : TASK) - 8, text);
    say(plan.devices[lane.device].name + ', ' + row.name + ', ' + text.replace(/\n/g, ', '));
    redrawTime();
}
// Keeps the time when it goes to another row, and goes on in the next lane.
function goRow(by) {
    var rows = rowsOf(lanes[spot.lane]), row = rows[spot.row];
    var time = row.list[spot.index * row.size + row.from] || 0, next = spot.row + by;
    if (next < 0 || next >= rows.length) {
        if (!lanes[spot.lane + by]) return;
        lanes[spot.lane].canvas.tabIndex = -1;
        spot.lane += by;
        rows = rowsOf(lanes[spot.lane]);
        next = by > 0 ? 0 : rows.length - 1;
    }
    spot.row = next;
    row = rows[next];
    spot.index = Math.max(0, eventAt(row.list, row.size, row.from, time));
    lanes[spot.lane].canvas.tabIndex = 0;
    lanes[spot.lane].canvas.focus();
    showSpot(true);
}
function listenToKeys(lane) {
    var canvas = lane.canvas;
    function go(by) { return function () { spot.index += by; showSpot(true); }; }
    function pan(by) {
        return function () { moveTime(span.from + by * (span.to - span.from) / 5, span.to - span.from); };
    }
    function middle(factor) { return function () { zoomTime(factor, (span.from + span.to) / 2); }; }
    canvas.tabIndex = lanes.indexOf(lane) === 0 ? 0 : -1;
    canvas.setAttribute('role', 'application');
    canvas.setAttribute('aria-label', 'Time line of ' + plan.devices[lane.device].name +
        '. Left and right go from task to task, up and down from row to row.');
    canvas.addEventListener('focus', function () {
        if (!canvas.matches(':focus-visible')) return;
        var index = lanes.indexOf(lane);
        if (spot.lane !== index) spot = {lane: index, row: 0, index: 0};
        showSpot(false);
    });
    canvas.addEventListener('blur', function () { cursor = -1; hover = null; showTip(0, 0, null); redrawTime(); });
    onKeys(canvas, {
        'ArrowRight': go(1), 'ArrowLeft': go(-1), 'Home': go(-Infinity), 'End': go(Infinity),
        'ArrowDown': function () { goRow(1); }, 'ArrowUp': function () { goRow(-1); },
        'Shift+ArrowRight': pan(1), 'Shift+ArrowLeft': pan(-1),
        '+': middle(1.6), '=': middle(1.6), '-': middle(1 / 1.6),
        '0': function () { moveTime(0, span.whole); },
        'Escape': function () { cursor = -1; hover = null; showTip(0, 0, null); redrawTime(); }
    });
}
// On paper all lanes are seen.
function listenToPrint() {
    window.addEventListener('beforeprint', function () { lanes.forEach(drawLane); });
}

// ---- its elements

function laneHead(lane) {
    var head = lane.head, device = plan.devices[lane.device], last = sides[sides.length - 1];
    head.textContent = '';
    add(head, swatched(make('b'), device.color, device.name));
    lane.idle = 1 - busyOf(stepOf(last), lane.device);
    if (isCompact) {
        add(head, make('span', 'idle ' + percent(lane.idle)));
        return;
    }
    var names = plan.stages.filter(function (stage) { return stage.device === lane.device; })
        .map(function (stage) { return stage.name; });
    var listed = names.length > 4 ? names.length + ' stages' : names.join(', ');
    add(head, make('span', listed || 'no stages'));
    if (names.length === 0) return;
    var planned = percent(busyOf(stepOf(sides[0]), lane.device));
    var text = 'busy ' + planned + ' planned';
    if (sides.length > 1)
        text = 'busy ' + percent(busyOf(stepOf(last), lane.device)) + ', planned ' + planned;
    add(head, make('span', text));
    add(head, make('span', 'takes ' + bytesText(lane.reserved) +
        (lane.limit ? ' of ' + bytesText(lane.limit) : '')));
    add(head, make('span', 'at most ' + lane.peak.count + ' in flight'));
}
function chooseStep(index) {
    sides[sides.length - 1].chosen = index;
    span.whole = 0;
    sides.forEach(function (side) { span.whole = Math.max(span.whole, stepOf(side).length); });
    span.whole = Math.max(1, span.whole * 1.005);
    lanes.forEach(function (lane) {
        lane.most = lane.reserved;
        sides.forEach(function (side) {
            lane.peak = peakOf(stepOf(side).devices[lane.device].levels);
            lane.most = Math.max(lane.most, lane.peak.bytes);
        });
        if (lane.limit < 1.6 * lane.most) lane.most = Math.max(lane.most, lane.limit);
        laneHead(lane);
        lane.canvas.style.height = laneHeight(lane) + 'px';
    });
    moveTime(0, span.whole);
    sortLanes();
}
function stepChoice(side) {
    var choice = make('select');
    choice.setAttribute('aria-label', 'the measured step that is shown');
    side.steps.forEach(function (step, index) {
        var option = make('option', 'step ' + step.step + ': ' + timeText(step.length) +
            (index === side.typical ? ' (typical)' : ''));
        option.value = index;
        add(choice, option);
    });
    choice.value = side.typical;
    choice.addEventListener('change', function () { chooseStep(Number(choice.value)); });
    return choice;
}
function kindLegend() {
    var legend = make('div', null, 'kinds'), seen = {};
    sides.forEach(function (side) {
        stepOf(side).devices.forEach(function (device) {
            for (var i = 0; i < device.tasks.length; i += 5) seen[device.tasks[i]] = true;
        });
    });
    KINDS.forEach(function (name, kind) {
        if (seen[kind]) add(legend, swatched(make('span'), KIND_COLORS[kind], name));
    });
    return add(legend, swatched(make('span'), color('transfer'), 'transfer'));
}
function showTimeLine(area) {
    ['planned', 'measured'].forEach(function (name) {
        if (!run[name]) return;
        run[name].name = name;
        run[name].chosen = run[name].typical;
        sides.push(run[name]);
    });
    var bar = add(make('div', null, 'tools'), kindLegend());
    if (sides.length > 1) add(bar, stepChoice(sides[1]));
    add(bar, button('+', 'nearer', function () { zoomTime(1.6, (span.from + span.to) / 2); }),
        button('\u2212', 'farther', function () { zoomTime(1 / 1.6, (span.from + span.to) / 2); }),
        button('whole', 'the whole step', function () { moveTime(0, span.whole); }));
    add(bar, compactButton(), orderChoice());
    timeArea = {axis: make('canvas'), frame: make('div', null, 'lanes')};
    add(area, add(make('h2'), document.createTextNode('Time line of a step')), bar);
    var frame = timeArea.frame;
    add(frame, add(make('div', null, 'lane axis'), make('div', null, 'head'),
        add(make('div'), timeArea.axis)));
    plan.devices.forEach(function (device, index) {
        var count = plan.stages.filter(function (s) { return s.device === index; }).length;
        var lane = {device: index, canvas: make('canvas'), head: make('div', null, 'head'),
            several: count > 1, limit: device.bytes_limit || 0, reserved: run.reserved[index],
            seen: false, most: 0};
        lanes.push(lane);
        lane.element = add(make('div', null, 'lane'), lane.head, add(make('div'), lane.canvas));
        add(frame, lane.element);
        listenTo(lane);
        listenToKeys(lane);
    });
    var watch = new IntersectionObserver(function (entries) {
        entries.forEach(function (entry) {
            lanes.forEach(function (lane) {
                if (lane.canvas !== entry.target) return;
                lane.seen = entry.isIntersecting;
                if (!lane.seen) lane.canvas.width = lane.canvas.height = 1;
            });
        });
        redrawTime();
    }, {rootMargin: '200px'});
    lanes.forEach(function (lane) { watch.observe(lane.canvas); });
    listenToPrint();
    add(area, frame, make('p', 'Point at a task to find it in all rows. Drag to move, hold Ctrl or ' +
        'Shift and turn the wheel to zoom; ? lists the keys. The line above memory is what is taken from the ' +
        'start; below it, what the plan says is in use at each moment' +
        (sides.length > 1 ? ': filled as measured, dashed as planned.' : '.'), 'soft help'));
    chooseStep(sides[sides.length - 1].typical);
    if (lanes.length > COMPACT_FROM) setCompact(true);
}
