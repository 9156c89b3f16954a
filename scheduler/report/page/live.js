// ---- a page that is served while the training runs: it asks where it comes from how it goes on

var LIVE_MILLISECONDS = 2000;
var liveTiles = null, liveStates = {prepared: 'is prepared', running: 'runs', lost: 'a worker is lost'};

function liveTile(name, value, rest) {
    add(liveTiles, tile(name, value, rest));
}
function fillLive(live) {
    var done = live.steps > 0 ? percent(live.step / live.steps) : '';
    liveTiles.textContent = '';
    liveTile('training', liveStates[live.state], live.error || (live.lost ? live.lost + ' losses, ' +
        live.recoveries + ' recoveries' : 'took ' + secondsText(live.seconds) + ' so far'));
    liveTile('step', String(live.step), 'of ' + live.steps + ', ' + done + (live.epoch ? ', epoch ' + live.epoch : ''));
    if (isNumber(live.loss)) liveTile('loss', numberText(live.loss), isNumber(live.accuracy) ?
        'accuracy ' + numberText(live.accuracy) : 'of the last step');
    if (isNumber(live.learning_rate)) liveTile('learning rate', numberText(live.learning_rate), 'of the last step');
    if (isNumber(live.left_seconds)) liveTile('left', timeLeft(live.left_seconds),
        countText(live.examples_per_second) + ' examples a second');
    if (isNumber(live.bubble)) liveTile('bubble', percent(live.bubble), live.slowest_device === undefined ? '' :
        'slowest: stage ' + live.slowest_stage + ' on ' + live.slowest_device);
    if (live.step_kept > 0) liveTile('kept', 'step ' + live.step_kept, 'the newest checkpoint');
}
function timeLeft(seconds) {
    if (seconds < 90) return Math.ceil(seconds) + ' s';
    if (seconds < 5400) return Math.round(seconds / 60) + ' min';
    return seconds < 172800 ? (seconds / 3600).toFixed(1) + ' h' : (seconds / 86400).toFixed(1) + ' days';
}
function takeLive(told) {
    ['losses', 'accuracy', 'metrics', 'rate', 'evaluations'].forEach(function (name) { data[name] = told[name]; });
    document.body.dataset.step = told.live.step;
    fillLive(told.live);
    fillCurves();
}
// Who hears the page is told of changes that matter, not of each step.
var liveSaid = '';
function sayLive(text) {
    if (text !== liveSaid) say(text);
    liveSaid = text;
}
function askLive() {
    function again() { setTimeout(askLive, LIVE_MILLISECONDS); }
    if (document.hidden) { again(); return; }
    fetch('data', {cache: 'no-store'}).then(function (answer) {
        if (!answer.ok) throw new Error('status ' + answer.status);
        return answer.json();
    }).then(function (told) {
        takeLive(told);
        sayLive('the training ' + liveStates[told.live.state]);
        again();
    }).catch(function () {
        var first = liveTiles.querySelector('b');
        if (first) first.textContent = 'no answer';
        sayLive('the training no longer answers: it has ended, or cannot be reached');
        again();
    });
}
function showLive(area) {
    liveTiles = make('div', null, 'tiles live');
    add(area, liveTiles);
    curvesArea = make('div', null, 'charts');
    add(section(area, 'Training'), curvesArea);
    askLive();
}
