// ---- the graph

// What is shown: all nodes, or, of many, modules. `extent` has its width and height.
var plan = data.plan || null, level = 'nodes', levels = {nodes: data};
if (data.modules) levels.modules = data.modules;
var extent = data, boxes = data.boxes, arrows = data.arrows, cells = null;
var canvas = document.getElementById('canvas'), ctx = canvas.getContext('2d');
var side = document.getElementById('side');
var view = {x: 0, y: 0, scale: 1};
var selected = -1, matches = [], matchAt = -1;
var isFitted = false, isMoved = false;
var CELL = 512, stageColors = [], opColors = new Map();

// ---- geometry

function placeBox(cells, box, index) {
    box.x = box.place[0]; box.y = box.place[1]; box.w = box.place[2]; box.h = box.place[3];
    box.from = []; box.to = [];
    box.key = (box.name + ' ' + box.op).toLowerCase();
    var right = Math.floor((box.x + box.w) / CELL), low = Math.floor((box.y + box.h) / CELL);
    for (var i = Math.floor(box.x / CELL); i <= right; i++) {
        for (var j = Math.floor(box.y / CELL); j <= low; j++) {
            var key = i * 65536 + j;
            if (!cells.has(key)) cells.set(key, []);
            cells.get(key).push(index);
        }
    }
}
function placeArrow(boxes, arrow, index) {
    boxes[arrow.from].to.push(index);
    boxes[arrow.to].from.push(index);
    var p = arrow.points;
    arrow.left = arrow.right = p[0]; arrow.top = arrow.low = p[1];
    for (var i = 2; i < p.length; i += 2) {
        arrow.left = Math.min(arrow.left, p[i]); arrow.right = Math.max(arrow.right, p[i]);
        arrow.top = Math.min(arrow.top, p[i + 1]); arrow.low = Math.max(arrow.low, p[i + 1]);
    }
}
Object.keys(levels).forEach(function (name) {
    var one = levels[name];
    one.cells = new Map();
    one.boxes.forEach(function (box, index) { placeBox(one.cells, box, index); });
    one.arrows.forEach(function (arrow, index) { placeArrow(one.boxes, arrow, index); });
});
cells = data.cells;
function boxAt(x, y) {
    var found = cells.get(Math.floor(x / CELL) * 65536 + Math.floor(y / CELL)) || [];
    for (var i = 0; i < found.length; i++) {
        var box = boxes[found[i]];
        var isInside = x >= box.x && x <= box.x + box.w && y >= box.y && y <= box.y + box.h;
        if (isInside) return found[i];
    }
    return -1;
}

// ---- colours

var mostSeconds = 0, mostFlops = 0;
function findMost() {
    mostSeconds = mostFlops = 0;
    boxes.forEach(function (box) {
        mostSeconds = Math.max(mostSeconds, box.seconds || 0);
        mostFlops = Math.max(mostFlops, box.flops || 0);
    });
}
findMost();
boxes.forEach(function (box) {
    if (box.color && !opColors.has(box.op)) opColors.set(box.op, PALETTE[opColors.size % PALETTE.length]);
});
if (plan) plan.stages.forEach(function (stage, index) {
    stageColors.push(PALETTE[index % PALETTE.length]);
});
function heat(share) {
    var part = Math.sqrt(Math.max(0, Math.min(1, share)));
    return 'hsl(' + Math.round(210 - 200 * part) + ',' + Math.round(30 + 60 * part) + '%,' +
        Math.round(90 - 28 * part) + '%)';
}
var modes = {
    device: {name: 'colour: device', there: plan !== null},
    stage: {name: 'colour: stage', there: plan !== null},
    family: {name: 'colour: kind of operator', there: plan === null},
    op: {name: 'colour: operator', there: true},
    cost: {name: 'colour: cost', there: true}
};
var mode = plan ? 'device' : 'family';
function colorOf(box) {
    if (!box.color) return color('box');
    if (mode === 'stage') return box.stage === undefined ? color('unplaced') : stageColors[box.stage];
    if (mode === 'op') return opColors.get(box.op) || color('box');
    if (mode === 'cost') {
        if (mostSeconds > 0) return heat((box.seconds || 0) / mostSeconds);
        return heat(mostFlops > 0 ? (box.flops || 0) / mostFlops : 0);
    }
    return box.color;
}
function recolor() {
    mapPicture = null;
    boxes.forEach(function (box) { box.fill = colorOf(box); });
    var legend = document.getElementById('legend');
    legend.textContent = '';
    function entry(fill, name) { add(legend, swatched(make('span'), fill, name)); }
    if (mode === 'device') plan.devices.forEach(function (device) {
        entry(device.color, device.name);
    });
    if (mode === 'stage') plan.stages.forEach(function (stage, index) {
        entry(stageColors[index], stage.name);
    });
    if (mode === 'op') opColors.forEach(function (fill, op) {
        if (legend.childNodes.length < 40) entry(fill, op);
    });
    if (mode === 'cost') {
        entry(heat(0), '0');
        var most = mostSeconds > 0 ? secondsText(mostSeconds) : countText(mostFlops) + ' flops';
        entry(heat(1), most);
    }
}

// ---- drawing

function path(p) {
    ctx.moveTo(p[0], p[1]);
    for (var i = 2; i < p.length; i += 2) {
        var middle = (p[i - 1] + p[i + 1]) / 2;
        ctx.bezierCurveTo(p[i - 2], middle, p[i], middle, p[i], p[i + 1]);
    }
}
function straight(p) {
    ctx.moveTo(p[0], p[1]);
    for (var i = 2; i < p.length; i += 2) ctx.lineTo(p[i], p[i + 1]);
}
function arrowHead(p) {
    var n = p.length, y = p[n - 1], up = p[n - 1] < p[n - 3] ? 1 : -1;
    ctx.moveTo(p[n - 2], y);
    ctx.lineTo(p[n - 2] - 3.5, y + 7 * up);
    ctx.lineTo(p[n - 2] + 3.5, y + 7 * up);
}
function fit(text, width) {
    var room = Math.floor((width - 8) / 5.6);
    if (text.length <= room) return text;
    var head = Math.floor(room / 3);
    return text.slice(0, head) + '\u2026' + text.slice(text.length - (room - head - 1));
}
function drawArrows(area) {
    var detailed = view.scale > 0.3;
    ctx.lineWidth = Math.max(1, 0.7 / view.scale);
    ctx.strokeStyle = color(view.scale > 0.15 ? 'arrow' : 'arrow-far');
    ctx.fillStyle = color('arrow');
    ctx.beginPath();
    var heads = [];
    for (var i = 0; i < arrows.length; i++) {
        var arrow = arrows[i];
        if (arrow.right < area.left || arrow.left > area.right || arrow.low < area.top ||
            arrow.top > area.low) continue;
        if (detailed) heads.push(arrow.points);
        (detailed ? path : straight)(arrow.points);
    }
    ctx.stroke();
    ctx.beginPath();
    heads.forEach(arrowHead);
    ctx.fill();
}
function drawBoxes(area) {
    var byColor = new Map(), shown = [], seen = new Set();
    var right = Math.floor(area.right / CELL), low = Math.floor(area.low / CELL);
    for (var i = Math.floor(area.left / CELL); i <= right; i++) {
        for (var j = Math.floor(area.top / CELL); j <= low; j++) {
            (cells.get(i * 65536 + j) || []).forEach(function (index) {
                if (seen.has(index)) return;
                seen.add(index);
                shown.push(index);
                var box = boxes[index];
                if (!byColor.has(box.fill)) byColor.set(box.fill, []);
                byColor.get(box.fill).push(box);
            });
        }
    }
    byColor.forEach(function (list, fill) {
        ctx.fillStyle = fill;
        ctx.beginPath();
        list.forEach(function (box) { ctx.rect(box.x, box.y, box.w, box.h); });
        ctx.fill();
    });
    if (view.scale > 0.2) {
        ctx.strokeStyle = color('outline');
        ctx.lineWidth = 0.8;
        ctx.beginPath();
        shown.forEach(function (index) {
            ctx.rect(boxes[index].x, boxes[index].y, boxes[index].w, boxes[index].h);
        });
        ctx.stroke();
    }
    if (view.scale > 0.4) {
        ctx.fillStyle = color('label');
        ctx.textAlign = 'center';
        shown.forEach(function (index) {
            var box = boxes[index], middle = box.x + box.w / 2;
            ctx.font = 'bold 11px sans-serif';
            ctx.fillText(fit(box.op, box.w), middle, box.y + 14);
            ctx.font = '10px sans-serif';
            ctx.fillText(fit(box.name, box.w), middle, box.y + 27);
        });
    }
}
function outline(box, stroke) {
    var width = Math.max(2.5, 2 / view.scale);
    ctx.strokeStyle = stroke;
    ctx.lineWidth = width;
    ctx.strokeRect(box.x - width / 2, box.y - width / 2, box.w + width, box.h + width);
}
function drawMarks() {
    matches.forEach(function (index) { outline(boxes[index], color('match')); });
    if (selected < 0) return;
    var box = boxes[selected];
    ctx.lineWidth = Math.max(2, 1.5 / view.scale);
    ['from', 'to'].forEach(function (way) {
        ctx.strokeStyle = ctx.fillStyle = color(way);
        ctx.beginPath();
        box[way].forEach(function (index) { path(arrows[index].points); });
        ctx.stroke();
        ctx.beginPath();
        box[way].forEach(function (index) { arrowHead(arrows[index].points); });
        ctx.fill();
    });
    outline(box, color('ink'));
}
function draw() {
    var ratio = window.devicePixelRatio || 1;
    var width = canvas.clientWidth, height = canvas.clientHeight;
    if (canvas.width !== width * ratio || canvas.height !== height * ratio) {
        canvas.width = width * ratio;
        canvas.height = height * ratio;
    }
    ctx.setTransform(1, 0, 0, 1, 0, 0);
    ctx.clearRect(0, 0, canvas.width, canvas.height);
    ctx.setTransform(view.scale * ratio, 0, 0, view.scale * ratio,
        -view.x * view.scale * ratio, -view.y * view.scale * ratio);
    var area = {left: view.x, top: view.y, right: view.x + width / view.scale,
        low: view.y + height / view.scale};
    drawArrows(area);
    drawBoxes(area);
    drawMarks();
    drawMap(width, height);
}
var isDue = false;
function redraw() {
    if (isDue) return;
    isDue = true;
    requestAnimationFrame(function () { isDue = false; draw(); });
}

// ---- moving about

function fitAll() {
    var legend = document.getElementById('legend').offsetHeight;
    var width = canvas.clientWidth, height = canvas.clientHeight - (legend > 0 ? legend + 14 : 0); // which lies on it
    if (width === 0 || height <= 0) return;
    isFitted = true;
    isMoved = false;
    view.scale = Math.min(width / extent.width, height / extent.height, 1.4);
    view.x = (extent.width - width / view.scale) / 2;
    view.y = (extent.height - height / view.scale) / 2;
    redraw();
}
function zoom(factor, x, y) {
    isMoved = true;
    var scale = Math.max(0.002, Math.min(6, view.scale * factor));
    view.x += x / view.scale - x / scale;
    view.y += y / view.scale - y / scale;
    view.scale = scale;
    redraw();
}
function zoomMiddle(factor) {
    zoom(factor, canvas.clientWidth / 2, canvas.clientHeight / 2);
}
function center(index) {
    isMoved = true;
    var box = boxes[index];
    view.scale = Math.max(view.scale, 0.9);
    view.x = box.x + box.w / 2 - canvas.clientWidth / view.scale / 2;
    view.y = box.y + box.h / 2 - canvas.clientHeight / view.scale / 2;
    redraw();
}
var pointers = new Map(), moved = 0, gap = 0;
canvas.addEventListener('wheel', function (event) {
    event.preventDefault();
    var amount = event.deltaMode === 1 ? event.deltaY * 16 : event.deltaY;
    zoom(Math.exp(-amount * 0.0015), event.offsetX, event.offsetY);
}, {passive: false});
canvas.addEventListener('pointerdown', function (event) {
    pointers.set(event.pointerId, [event.offsetX, event.offsetY]);
    canvas.setPointerCapture(event.pointerId);
    moved = 0;
    gap = 0;
    canvas.classList.add('dragged');
});
canvas.addEventListener('pointermove', function (event) {
    var last = pointers.get(event.pointerId);
    if (!last) return;
    pointers.set(event.pointerId, [event.offsetX, event.offsetY]);
    if (pointers.size === 2) {
        var two = Array.from(pointers.values());
        var now = Math.hypot(two[0][0] - two[1][0], two[0][1] - two[1][1]);
        if (gap > 0) zoom(now / gap, (two[0][0] + two[1][0]) / 2, (two[0][1] + two[1][1]) / 2);
        gap = now;
        moved = 99;
        return;
    }
    moved += Math.abs(event.offsetX - last[0]) + Math.abs(event.offsetY - last[1]);
    isMoved = true;
    view.x -= (event.offsetX - last[0]) / view.scale;
    view.y -= (event.offsetY - last[1]) / view.scale;
    redraw();
});
function release(event) {
    if (pointers.delete(event.pointerId) && event.type === 'pointerup' && moved < 4)
        select(boxAt(view.x + event.offsetX / view.scale, view.y + event.offsetY / view.scale));
    if (pointers.size === 0) canvas.classList.remove('dragged');
}
canvas.addEventListener('pointerup', release);
canvas.addEventListener('pointercancel', release);
// Also when paper, or another part of the page, has changed the room.
new ResizeObserver(function () { (isMoved ? redraw : fitAll)(); }).observe(canvas);

// ---- the same by keys

function pan(right, low) {
    isMoved = true;
    view.x += right * 80 / view.scale;
    view.y += low * 80 / view.scale;
    redraw();
}
function goTo(index) {
    select(index);
    center(index);
    sayNode(index);
}
// The box that is nearest to the middle of what is in view: where walking begins.
function nearestBox() {
    var x = view.x + canvas.clientWidth / 2 / view.scale, y = view.y + canvas.clientHeight / 2 / view.scale;
    var best = -1, least = Infinity;
    boxes.forEach(function (box, index) {
        var far = Math.hypot(box.x + box.w / 2 - x, box.y + box.h / 2 - y);
        if (far < least) { least = far; best = index; }
    });
    return best;
}
// Along an arrow: the middle one of several.
function walkAlong(way, end) {
    if (boxes.length === 0) return;
    if (selected < 0) { goTo(nearestBox()); return; }
    var list = boxes[selected][way];
    if (list.length === 0) { say(way === 'to' ? 'nothing reads this' : 'this reads nothing'); return; }
    goTo(arrows[list[(list.length - 1) >> 1]][end]);
}
// To the nearest box aside, at about the same height.
function walkAside(sign) {
    if (boxes.length === 0) return;
    if (selected < 0) { goTo(nearestBox()); return; }
    var from = boxes[selected], best = -1, least = Infinity;
    boxes.forEach(function (box, index) {
        var way = sign * (box.x + box.w / 2 - from.x - from.w / 2);
        if (way <= 0 || Math.abs(box.y + box.h / 2 - from.y - from.h / 2) > Math.max(box.h, from.h)) return;
        if (way < least) { least = way; best = index; }
    });
    if (best < 0) say(sign > 0 ? 'nothing to the right' : 'nothing to the left');
    else goTo(best);
}
onKeys(canvas, {
    'ArrowDown': function () { walkAlong('to', 'to'); },
    'ArrowUp': function () { walkAlong('from', 'from'); },
    'ArrowRight': function () { walkAside(1); },
    'ArrowLeft': function () { walkAside(-1); },
    'Shift+ArrowDown': function () { pan(0, 1); },
    'Shift+ArrowUp': function () { pan(0, -1); },
    'Shift+ArrowRight': function () { pan(1, 0); },
    'Shift+ArrowLeft': function () { pan(-1, 0); },
    '+': function () { zoomMiddle(1.4); },
    '=': function () { zoomMiddle(1.4); },
    '-': function () { zoomMiddle(1 / 1.4); },
    '0': fitAll,
    'Home': function () { if (boxes.length > 0) goTo(0); },
    'End': function () { if (boxes.length > 0) goTo(boxes.length - 1); },
    'Enter': function () { openModule(selected); },
    'Escape': function () { select(-1); }
});
canvas.tabIndex = 0;
canvas.setAttribute('role', 'application');
function nameCanvas() {
    canvas.setAttribute('aria-label', 'The graph: ' + boxes.length + (level === 'modules' ? ' modules, ' : ' boxes, ') +
        arrows.length + ' arrows. Arrow keys go along arrows and aside, with Shift they move the view, plus and ' +
        'minus zoom, 0 shows all' + (level === 'modules' ? ', Enter shows the nodes of a module.' : '.'));
}
nameCanvas();
