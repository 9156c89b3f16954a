// ---- what every part of the page is made with

var data = JSON.parse(document.getElementById('data').textContent);
var theme = new Map();
// The page's style sheet has the palette; its colours differ on light and on dark screens.
function color(name) {
    var style = getComputedStyle(document.documentElement);
    if (!theme.has(name)) theme.set(name, style.getPropertyValue('--' + name).trim());
    return theme.get(name);
}
var PALETTE = [];
while (color('series-' + PALETTE.length)) PALETTE.push(color('series-' + PALETTE.length));

function make(element, text, className) {
    var made = document.createElement(element);
    if (text !== undefined && text !== null) made.textContent = text;
    if (className) made.className = className;
    return made;
}
function add(parent) {
    for (var i = 1; i < arguments.length; i++) parent.appendChild(arguments[i]);
    return parent;
}
// Fills an element with a square of a colour and a text.
function swatched(element, fill, text) {
    var swatch = make('i', null, 'swatch');
    swatch.style.background = fill;
    return add(element, swatch, document.createTextNode(text));
}
// A list of what `entry` makes of each, and how many more there are.
function listed(list, limit, entry) {
    var items = make('ul'), rest = list.length - limit;
    list.slice(0, limit).forEach(function (each) { add(items, entry(each)); });
    if (rest > 0) add(items, make('li', 'and ' + rest + ' more', 'soft'));
    return items;
}
function digits(number) {
    return number >= 100 ? number.toFixed(0) : number >= 10 ? number.toFixed(1) : number.toFixed(2);
}
function scaled(number, base, units) {
    var i = 0;
    while (number >= base && i + 1 < units.length) { number /= base; i++; }
    return (i === 0 && number === Math.round(number) ? number : digits(number)) +
        (units[i] ? ' ' + units[i] : '');
}
function bytesText(bytes) {
    return scaled(bytes, 1024, ['bytes', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB']);
}
function countText(count) { return scaled(count, 1000, ['', 'k', 'M', 'G', 'T', 'P']); }
function secondsText(seconds) {
    if (seconds === 0) return '0 s';
    if (seconds < 1e-6) return digits(seconds * 1e9) + ' ns';
    if (seconds < 1e-3) return digits(seconds * 1e6) + ' \u00b5s';
    if (seconds < 1) return digits(seconds * 1e3) + ' ms';
    return digits(seconds) + ' s';
}
function percent(share) { return (100 * share).toFixed(share < 0.1 ? 1 : 0) + ' %'; }

var NS = 'http://www.w3.org/2000/svg';
function draw2(element, attributes, text) {
    var made = document.createElementNS(NS, element);
    Object.keys(attributes).forEach(function (key) { made.setAttribute(key, attributes[key]); });
    if (text !== undefined) made.textContent = text;
    return made;
}
function button(text, title, action) {
    var made = make('button', text);
    made.type = 'button';
    made.title = title;
    made.setAttribute('aria-label', title);
    made.addEventListener('click', action);
    return made;
}
function section(area, title) {
    return add(area, make('h2', title));
}
// A table or picture that is wider than its place is moved by itself; the arrow keys do that, too.
function scrolled(inside, name) {
    var frame = add(make('div', null, 'wide'), inside);
    frame.tabIndex = 0;
    frame.setAttribute('role', 'region');
    frame.setAttribute('aria-label', name);
    return frame;
}

// ---- what is told beside what is seen

// For those who hear the page: said once, where the last one said ends.
function say(text) {
    document.getElementById('said').textContent = text;
}
var tip = make('div', null, 'tip');
tip.setAttribute('aria-hidden', 'true'); // what it shows is the name of what it is at
function showTip(x, y, text) {
    tip.textContent = text || '';
    tip.style.display = text ? 'block' : 'none';
    if (!text) return;
    var left = Math.min(x + 14, window.innerWidth - tip.offsetWidth - 8), top = y + 16;
    if (top + tip.offsetHeight > window.innerHeight) top = y - tip.offsetHeight - 10;
    tip.style.left = Math.max(4, left) + 'px';
    tip.style.top = Math.max(4, top) + 'px';
}
// Shows a text at an element, for the mouse and for the keyboard, and names it so.
function told(element, text) {
    element.setAttribute('tabindex', '0');
    element.setAttribute('role', 'img');
    element.setAttribute('aria-label', text);
    element.addEventListener('pointermove', function (event) { showTip(event.clientX, event.clientY, text); });
    element.addEventListener('pointerleave', function () { showTip(0, 0, null); });
    element.addEventListener('focus', function () {
        var place = element.getBoundingClientRect();
        showTip(place.left + 10, place.bottom - 12, text);
    });
    element.addEventListener('blur', function () { showTip(0, 0, null); });
    return element;
}
// Many that are told become one stop for Tab: arrow keys go from one to the next.
function roving(list) {
    list.forEach(function (element, index) {
        element.setAttribute('tabindex', index === 0 ? '0' : '-1');
        function go(to) {
            if (to < 0 || to >= list.length) return;
            element.setAttribute('tabindex', '-1');
            list[to].setAttribute('tabindex', '0');
            list[to].focus();
        }
        onKeys(element, {
            'ArrowRight': function () { go(index + 1); },
            'ArrowDown': function () { go(index + 1); },
            'ArrowLeft': function () { go(index - 1); },
            'ArrowUp': function () { go(index - 1); },
            'Home': function () { go(0); },
            'End': function () { go(list.length - 1); }
        });
    });
}
// Calls the function that `keys` has for a key, by its name or, with Shift, by 'Shift+' and its name.
function onKeys(element, keys) {
    element.addEventListener('keydown', function (event) {
        if (event.ctrlKey || event.altKey || event.metaKey) return;
        var action = (event.shiftKey && keys['Shift+' + event.key]) || keys[event.key];
        if (!action) return;
        event.preventDefault();
        action(event);
    });
}
