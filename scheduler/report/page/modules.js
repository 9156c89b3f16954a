// ---- large graphs: modules in place of their nodes, and a small map of what is drawn

var MAP = 150, map = document.getElementById('map'), mapPicture = null, levelButton = null;

function useLevel(name) {
    if (name === level || !levels[name]) return;
    level = name;
    extent = levels[name];
    boxes = extent.boxes;
    arrows = extent.arrows;
    cells = extent.cells;
    selected = matchAt = -1;
    matches = [];
    findMost();
    recolor();
    nameCanvas();
    levelButton.setAttribute('aria-pressed', name === 'modules' ? 'true' : 'false');
    showSide();
    fitAll();
}
// The nodes of a module, in view; the first of them is picked.
function openModule(index) {
    if (level !== 'modules' || index < 0 || !boxes[index].color) return;
    var name = boxes[index].name, inside = [];
    data.module_of.forEach(function (module, box) { if (module === index) inside.push(box); });
    useLevel('nodes');
    var left = Infinity, right = -Infinity, top = Infinity, low = -Infinity;
    inside.forEach(function (box) {
        left = Math.min(left, boxes[box].x);
        right = Math.max(right, boxes[box].x + boxes[box].w);
        top = Math.min(top, boxes[box].y);
        low = Math.max(low, boxes[box].y + boxes[box].h);
    });
    isMoved = true;
    select(inside[0]);
    view.scale = Math.min(1.2, canvas.clientWidth / (right - left + 80), canvas.clientHeight / (low - top + 80));
    view.x = (left + right) / 2 - canvas.clientWidth / view.scale / 2;
    view.y = (top + low) / 2 - canvas.clientHeight / view.scale / 2;
    redraw();
    say(name + ': ' + inside.length + ' nodes');
}
// Back to modules, to that of the node that was picked.
function closeModule() {
    var module = selected >= 0 && level === 'nodes' ? data.module_of[selected] : -1;
    useLevel('modules');
    if (module >= 0) goTo(module);
}
function toggleLevel() {
    if (!data.modules) return;
    if (level === 'modules') useLevel('nodes'); else closeModule();
    say(level === 'modules' ? 'modules' : 'all nodes');
}
canvas.addEventListener('dblclick', function () { openModule(selected); });

// ---- the map

function mapScale() { return Math.min(MAP / extent.width, MAP / extent.height); }
// The boxes, drawn once for each level and choice of colours.
function paintMap() {
    var scale = mapScale(), ratio = window.devicePixelRatio || 1;
    mapPicture = document.createElement('canvas');
    mapPicture.width = Math.max(1, Math.ceil(extent.width * scale * ratio));
    mapPicture.height = Math.max(1, Math.ceil(extent.height * scale * ratio));
    var c = mapPicture.getContext('2d');
    c.fillStyle = color('paper');
    c.fillRect(0, 0, mapPicture.width, mapPicture.height);
    boxes.forEach(function (box) {
        c.fillStyle = box.color ? box.fill : color('arrow');
        c.fillRect(box.x * scale * ratio, box.y * scale * ratio, Math.max(1, box.w * scale * ratio),
            Math.max(1, box.h * scale * ratio));
    });
}
// There while a part of the graph is out of view.
function drawMap(width, height) {
    var scale = mapScale(), ratio = window.devicePixelRatio || 1;
    var pixel = 1 / view.scale;
    var isWhole = view.x <= pixel && view.y <= pixel && view.x + width * pixel >= extent.width - pixel &&
        view.y + height * pixel >= extent.height - pixel;
    map.style.display = isWhole ? 'none' : 'block';
    if (isWhole) return;
    if (!mapPicture) paintMap();
    map.width = mapPicture.width;
    map.height = mapPicture.height;
    map.style.width = mapPicture.width / ratio + 'px';
    map.style.height = mapPicture.height / ratio + 'px';
    var c = map.getContext('2d'), part = scale * ratio;
    c.drawImage(mapPicture, 0, 0);
    c.lineWidth = 1.5 * ratio;
    c.strokeStyle = color('warning');
    c.strokeRect(view.x * part, view.y * part, width / view.scale * part, height / view.scale * part);
}
function goToMap(event) {
    var scale = mapScale();
    isMoved = true;
    view.x = event.offsetX / scale - canvas.clientWidth / view.scale / 2;
    view.y = event.offsetY / scale - canvas.clientHeight / view.scale / 2;
    redraw();
}
map.addEventListener('mousedown', function (event) { // keys go on where they went
    event.preventDefault();
    canvas.focus();
});
map.addEventListener('pointerdown', function (event) {
    map.setPointerCapture(event.pointerId);
    goToMap(event);
});
map.addEventListener('pointermove', function (event) { if (event.buttons > 0) goToMap(event); });
