// ---- curves: losses, learning rate, and what evaluations came to; losses over the rates of a search

var CURVE = {height: 210, left: 62, right: 14, top: 12, bottom: 28};
var DASHES = ['', '7 4', '2 3', '9 3 2 3', '1 4', '12 4'];
var curvesArea = null, charts = [];
// What lies along a chart: steps, or rates, which are drawn by their logarithm.
var STEPS = {name: 'step', best: 'best after step', tick: String,
    text: function (step) { return 'step ' + (Number.isInteger(step) ? step : 'about ' + Math.round(step)); },
    cell: function (step) { return String(Math.round(step)); }, isBest: 'the best evaluation'};
var RATES = {name: 'rate', best: 'suggested:', tick: function (power) { return numberText(Math.pow(10, power)); },
    text: function (power) { return 'rate ' + RATES.tick(power); }, isBest: 'suggested: here it falls fastest'};
RATES.cell = RATES.tick;

function numberText(value) {
    var size = Math.abs(value);
    if (value === 0) return '0';
    return size >= 1e5 || size < 1e-4 ? value.toExponential(2) : String(Number(value.toPrecision(4)));
}
function isNumber(value) { return typeof value === 'number'; }
// A round number of which a few fit into a length.
function roundStep(length, count) {
    var step = Math.pow(10, Math.floor(Math.log10(length / count)));
    [2, 5, 10].some(function (factor) {
        if (length / step <= count) return true;
        step = Math.pow(10, Math.floor(Math.log10(length / count))) * factor;
        return false;
    });
    return step;
}
// The points of all series that are numbers: one that is not finite is none. A rough one may leave the chart above.
function chartRange(chart) {
    var range = {first: Infinity, last: -Infinity, low: Infinity, high: -Infinity};
    chart.series.forEach(function (one) {
        one.points.forEach(function (point) {
            range.first = Math.min(range.first, point[0]);
            range.last = Math.max(range.last, point[0]);
            if (!isNumber(point[1])) return;
            range.low = Math.min(range.low, point[1]);
            if (!one.isRough) range.high = Math.max(range.high, point[1]);
        });
    });
    if (range.low > range.high) range.low = range.high = 0;
    if (chart.fromZero) range.low = Math.min(0, range.low);
    if (range.high === range.low) range.high = range.low + (Math.abs(range.low) || 1);
    if (range.last <= range.first) range.last = range.first + 1;
    return range;
}
function seriesColor(one) { return 'var(--curve-' + one.number % 6 + ')'; }
function seriesDash(one) { return DASHES[one.number % DASHES.length]; }
function curveLine(one, x, y) {
    var path = '', isDown = false;
    one.points.forEach(function (point) {
        if (isNumber(point[1])) path += (isDown ? 'L' : 'M') + x(point[0]).toFixed(1) + ' ' + y(point[1]).toFixed(1);
        isDown = isNumber(point[1]);
    });
    return draw2('path', {'class': 'line', d: path || 'M0 0', stroke: seriesColor(one),
        'stroke-dasharray': seriesDash(one)});
}
// A single point is no line, and evaluations are few: those are drawn as dots, too.
function curveDots(svg, one, x, y) {
    if (one.points.length > 60 || (one.points.length > 1 && !one.isDotted)) return;
    one.points.forEach(function (point) {
        if (!isNumber(point[1])) return;
        add(svg, draw2('circle', {cx: x(point[0]), cy: y(point[1]), r: 2.6, fill: seriesColor(one)}));
    });
}
function drawGrid(svg, chart, width, x, y) {
    var range = chart.range, i, step = roundStep(range.high - range.low, 5);
    for (i = Math.ceil(range.low / step - 1e-9); i * step <= range.high * (1 + 1e-9); i++) {
        var line = 'M' + CURVE.left + ' ' + y(i * step) + 'H' + (width - CURVE.right);
        var place = {x: CURVE.left - 7, y: y(i * step) + 4, 'class': 'value'};
        add(svg, draw2('path', {'class': 'grid', d: line}), draw2('text', place, numberText(i * step)));
    }
    step = Math.max(1, roundStep(range.last - range.first, Math.max(2, width / 80)));
    for (i = Math.ceil(range.first / step); i * step <= range.last; i++) {
        add(svg, draw2('path', {'class': 'grid', d: 'M' + x(i * step) + ' ' + (CURVE.height - CURVE.bottom) + 'v5'}),
            draw2('text', {x: x(i * step), y: CURVE.height - 8, 'class': 'step'}, chart.axis.tick(i * step)));
    }
}
function drawBest(svg, chart, x, y) {
    if (!chart.best) return;
    chart.series.forEach(function (one) {
        if (!one.isDotted) return;
        one.points.forEach(function (point) {
            if (point[0] !== chart.best || !isNumber(point[1])) return;
            add(svg, draw2('path', {'class': 'best', d: 'M' + x(point[0]) + ' ' + CURVE.top + 'V' +
                (CURVE.height - CURVE.bottom)}),
            draw2('circle', {'class': 'best', cx: x(point[0]), cy: y(point[1]), r: 5.5, fill: 'none',
                stroke: seriesColor(one)}));
        });
    });
}
function drawChart(chart) {
    var width = chart.svg.parentNode.clientWidth, svg = chart.svg;
    if (width === 0) return;
    var range = chart.range = chartRange(chart);
    chart.x = function (step) {
        return CURVE.left + (step - range.first) / (range.last - range.first) * (width - CURVE.left - CURVE.right);
    };
    chart.y = function (value) {
        var part = (value - range.low) / (range.high - range.low);
        return CURVE.height - CURVE.bottom - part * (CURVE.height - CURVE.top - CURVE.bottom);
    };
    svg.textContent = '';
    svg.setAttribute('viewBox', '0 0 ' + width + ' ' + CURVE.height);
    drawGrid(svg, chart, width, chart.x, chart.y);
    drawBest(svg, chart, chart.x, chart.y);
    chart.series.slice().reverse().forEach(function (one) {
        add(svg, curveLine(one, chart.x, chart.y));
        curveDots(svg, one, chart.x, chart.y);
    });
    chart.cursor = draw2('path', {'class': 'cursor', d: ''});
    add(svg, chart.cursor);
}
function drawCharts() {
    if (document.body.dataset.tab === 'run') charts.forEach(drawChart);
}

// ---- what a curve has at a step

function stepsOf(chart) {
    var all = new Set();
    chart.series.forEach(function (one) { one.points.forEach(function (point) { all.add(point[0]); }); });
    return Array.from(all).sort(function (a, b) { return a - b; });
}
function textAt(chart, step) {
    var text = chart.axis.text(step);
    chart.series.forEach(function (one) {
        one.points.forEach(function (point) {
            if (point[0] !== step) return;
            text += '\n' + one.name + ' ' + (isNumber(point[1]) ? numberText(point[1]) : 'not finite');
        });
    });
    return text + (step === chart.best ? '\n' + chart.axis.isBest : '');
}
function pointAt(chart, index) {
    var place = chart.svg.getBoundingClientRect();
    chart.at = Math.max(0, Math.min(chart.steps.length - 1, index));
    var step = chart.steps[chart.at], text = textAt(chart, step), x = chart.x(step);
    chart.cursor.setAttribute('d', 'M' + x + ' ' + CURVE.top + 'V' + (CURVE.height - CURVE.bottom));
    showTip(place.left + x * place.width / chart.svg.viewBox.baseVal.width, place.top + CURVE.top, text);
    chart.svg.setAttribute('aria-valuenow', Math.round(step));
    chart.svg.setAttribute('aria-valuetext', text.replace(/\n/g, ', '));
}
function leaveChart(chart) {
    chart.cursor.setAttribute('d', '');
    showTip(0, 0, null);
}
function nearestStep(chart, x) {
    var best = 0;
    chart.steps.forEach(function (step, index) {
        if (Math.abs(chart.x(step) - x) < Math.abs(chart.x(chart.steps[best]) - x)) best = index;
    });
    return best;
}
function listenToChart(chart) {
    var svg = chart.svg;
    svg.addEventListener('pointermove', function (event) {
        var place = svg.getBoundingClientRect();
        pointAt(chart, nearestStep(chart, (event.clientX - place.left) / place.width * svg.viewBox.baseVal.width));
    });
    svg.addEventListener('pointerleave', function () { leaveChart(chart); });
    svg.addEventListener('blur', function () { leaveChart(chart); });
    function go(by) { return function () { pointAt(chart, chart.at + by); }; }
    onKeys(svg, {
        'ArrowRight': go(1), 'ArrowUp': go(1), 'ArrowLeft': go(-1), 'ArrowDown': go(-1),
        'PageUp': go(20), 'PageDown': go(-20), 'Home': go(-Infinity), 'End': go(Infinity),
        'b': function () { if (chart.best) pointAt(chart, chart.steps.indexOf(chart.best)); },
        'Escape': function () { leaveChart(chart); }
    });
}

// ---- its elements

function sampleLine(one) {
    var svg = draw2('svg', {'class': 'sample', viewBox: '0 0 26 10', 'aria-hidden': 'true'});
    return add(svg, draw2('path', {'class': 'line', d: 'M0 5H26', stroke: seriesColor(one),
        'stroke-dasharray': seriesDash(one)}));
}
function lastNumber(points) {
    for (var i = points.length - 1; i >= 0; i--) if (isNumber(points[i][1])) return points[i][1];
    return null;
}
function bestText(chart) { return chart.axis.best + ' ' + chart.axis.cell(chart.best); }
function curveLegend(chart) {
    var legend = make('figcaption', null, 'soft');
    chart.series.forEach(function (one) {
        var last = lastNumber(one.points), name = one.name + (last === null ? '' : ' ' + numberText(last));
        add(legend, add(make('span', null, 'named'), sampleLine(one), document.createTextNode(name)));
    });
    if (chart.best) chart.series.forEach(function (one) {
        one.points.forEach(function (point) {
            if (one.isDotted && point[0] === chart.best && isNumber(point[1])) add(legend, make('span',
                '\u25ef ' + bestText(chart) + ': ' + numberText(point[1]), 'named best'));
        });
    });
    return legend;
}
// The same as numbers: not more rows than can be read.
function curveTable(chart) {
    var table = make('table'), head = make('tr'), every = Math.ceil(chart.steps.length / 40);
    [chart.axis.name].concat(chart.series.map(function (one) { return one.name; })).forEach(function (name) {
        var cell = make('th', name, 'number');
        cell.scope = 'col';
        add(head, cell);
    });
    add(table, head);
    chart.steps.forEach(function (step, index) {
        if (index % every !== 0 && index !== chart.steps.length - 1 && step !== chart.best) return;
        var line = add(make('tr'), make('td', chart.axis.cell(step), 'number'));
        chart.series.forEach(function (one) {
            var found = one.points.filter(function (point) { return point[0] === step; })[0];
            add(line, make('td', found && isNumber(found[1]) ? numberText(found[1]) : '', 'number'));
        });
        add(table, line);
    });
    return table;
}
function curveDetails(chart) {
    var details = add(make('details'), make('summary', 'as numbers'));
    details.open = openTables.has(chart.title);
    if (details.open) add(details, scrolled(curveTable(chart), chart.title + ', as numbers'));
    details.addEventListener('toggle', function () {
        if (!details.open) { openTables.delete(chart.title); return; }
        openTables.add(chart.title);
        if (details.childNodes.length === 1) add(details, scrolled(curveTable(chart), chart.title + ', as numbers'));
    });
    return details;
}
var openTables = new Set();
function prepareChart(chart) {
    chart.axis = chart.axis || STEPS;
    chart.steps = stepsOf(chart);
    chart.series.forEach(function (one, index) { one.number = index; });
    chart.at = chart.steps.length - 1;
    return chart;
}
function showChart(area, chart) {
    chart.svg = draw2('svg', {'class': 'curves', tabindex: 0, role: 'slider',
        'aria-label': chart.title + ', by ' + chart.axis.name,
        'aria-valuemin': Math.round(chart.steps[0]), 'aria-valuemax': Math.round(chart.steps[chart.at]),
        'aria-valuenow': Math.round(chart.steps[chart.at]),
        'aria-valuetext': textAt(chart, chart.steps[chart.at]).replace(/\n/g, ', ')});
    listenToChart(chart);
    chart.legend = curveLegend(chart);
    chart.details = curveDetails(chart);
    add(area, add(make('figure', null, 'chart'), make('h3', chart.title), add(make('div'), chart.svg),
        chart.legend, chart.details));
    charts.push(chart);
}
// Metrics of evaluations stand beside those of the training's steps where these are told, else by themselves.
function listCharts() {
    var list = [], evaluations = data.evaluations || {series: []}, losses = [], right = [],
        others = [], steps = (data.metrics || {series: []}).series.map(function (one) {
            return {name: one.name, series: [{name: one.name, points: one.points}]};
        });
    function ofSteps(name) {
        return steps.filter(function (one) { return one.name === name; }).map(function (one) { return one.series; })[0];
    }
    if (data.losses) losses = data.losses.series.map(function (one) { return {name: one.name, points: one.points}; });
    if (data.accuracy) right.push({name: 'accuracy', points: data.accuracy.points});
    evaluations.series.forEach(function (one) {
        var beside = one.name === 'loss' ? losses : one.name === 'accuracy' && data.accuracy ? right :
            ofSteps(one.name);
        if (beside) beside.push({name: 'evaluation', points: one.points, isDotted: true});
        else others.push(one);
    });
    if (losses.length > 0) list.push({title: losses.length > 1 && data.losses ? 'Losses' : 'Loss', series: losses,
        fromZero: true, best: evaluations.best_step});
    if (data.accuracy) list.push({title: 'Accuracy', series: right, best: evaluations.best_step});
    steps.forEach(function (one) {
        list.push({title: one.name, series: one.series, best: evaluations.best_step});
    });
    others.forEach(function (one) {
        list.push({title: 'Evaluation: ' + one.name, best: evaluations.best_step,
            series: [{name: one.name, points: one.points, isDotted: true}]});
    });
    if (data.rate) list.push({title: 'Learning rate', fromZero: true,
        series: [{name: 'learning rate', points: data.rate.points}]});
    if (data.search) list.push(searchChart(data.search));
    return list;
}
function searchChart(search) {
    function over(column) {
        return search.points.map(function (point) { return [Math.log10(point[0]), point[column]]; });
    }
    return {title: 'Loss by learning rate', axis: RATES, best: search.suggested && Math.log10(search.suggested),
        series: [{name: 'smoothed', points: over(2), isDotted: true}, {name: 'loss', points: over(1), isRough: true}]};
}
// Those that are there already take what is new, and keep the focus; but what is pointed at stays.
function renewChart(chart, made) {
    var isPointed = chart.cursor && chart.cursor.getAttribute('d') !== '', step = chart.steps[chart.at];
    chart.series = made.series;
    chart.best = made.best;
    prepareChart(chart);
    var legend = curveLegend(chart), details = curveDetails(chart);
    chart.legend.replaceWith(legend);
    chart.legend = legend;
    if (!chart.details.contains(document.activeElement)) {
        chart.details.replaceWith(details);
        chart.details = details;
    }
    chart.svg.setAttribute('aria-valuemax', Math.round(chart.steps[chart.at]));
    drawChart(chart);
    if (isPointed) pointAt(chart, nearestStep(chart, chart.x(step)));
}
function fillCurves() {
    var list = listCharts().map(prepareChart).filter(function (chart) { return chart.steps.length > 0; });
    var isSame = list.length === charts.length && list.every(function (chart, index) {
        return chart.title === charts[index].title;
    });
    if (isSame && document.body.dataset.tab === 'run') {
        list.forEach(function (made, index) { renewChart(charts[index], made); });
        return;
    }
    charts = [];
    curvesArea.textContent = '';
    list.forEach(function (chart) { showChart(curvesArea, chart); });
    drawCharts();
}
function showCurves(area) {
    if (data.is_live || (!data.losses && !data.evaluations && !data.search)) return;
    curvesArea = make('div', null, 'charts');
    add(section(area, data.search ? 'Search for a learning rate' : 'Training'), curvesArea);
    fillCurves();
}
