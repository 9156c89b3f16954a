// ---- many devices: a row of 20 pixels for each, in the order of their idle time

var COMPACT_FROM = 12; // devices, above which rows are compact at first
var isCompact = false, compactToggle = null, laneOrder = 'job';
var FULL_ROW = {left: LEFT, task: TASK, send: SEND, gap: GAP}, COMPACT_ROW = {left: 26, task: 12, send: 4, gap: 1};

function setCompact(is) {
    var row = is ? COMPACT_ROW : FULL_ROW;
    isCompact = is;
    LEFT = row.left;
    TASK = row.task;
    SEND = row.send;
    GAP = row.gap;
    spot = {lane: 0, row: 0, index: 0};
    timeArea.frame.classList.toggle('compact', is);
    compactToggle.setAttribute('aria-pressed', is ? 'true' : 'false');
    lanes.forEach(function (lane) {
        laneHead(lane);
        lane.canvas.style.height = laneHeight(lane) + 'px';
    });
    sortLanes();
    redrawTime();
}
function compactButton() {
    compactToggle = button('compact', 'compact rows, without what is planned and memory', function () {
        setCompact(!isCompact);
    });
    compactToggle.setAttribute('aria-pressed', 'false');
    return compactToggle;
}
// Rows move with their elements, so that keys and screen readers meet them in the order that is seen.
function sortLanes() {
    lanes.sort(function (a, b) {
        if (laneOrder === 'idle' && a.idle !== b.idle) return b.idle - a.idle;
        if (laneOrder === 'busy' && a.idle !== b.idle) return a.idle - b.idle;
        return a.device - b.device;
    });
    lanes.forEach(function (lane, index) {
        lane.canvas.tabIndex = index === 0 ? 0 : -1;
        add(timeArea.frame, lane.element);
    });
}
function orderChoice() {
    var choice = make('select');
    choice.setAttribute('aria-label', 'the order of the devices');
    [['job', 'order: of the job'], ['idle', 'order: most idle first'], ['busy', 'order: busiest first']]
        .forEach(function (order) {
            var option = make('option', order[1]);
            option.value = order[0];
            add(choice, option);
        });
    choice.addEventListener('change', function () {
        laneOrder = choice.value;
        spot = {lane: 0, row: 0, index: 0};
        sortLanes();
        say(choice.options[choice.selectedIndex].textContent);
    });
    return choice;
}
