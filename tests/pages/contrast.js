// The texts of a page whose contrast with what is behind them is less than WCAG 2.1 asks for (1.4.3).
(function () {
    'use strict';
    function parse(text) {
        var numbers = (text.match(/[\d.]+/g) || []).map(Number);
        return {r: numbers[0], g: numbers[1], b: numbers[2], a: numbers.length > 3 ? numbers[3] : 1};
    }
    function over(top, low) {
        function mix(name) { return top[name] * top.a + low[name] * (1 - top.a); }
        return {r: mix('r'), g: mix('g'), b: mix('b'), a: 1};
    }
    function luminance(color) {
        var parts = [color.r, color.g, color.b].map(function (part) {
            var share = part / 255;
            return share <= 0.03928 ? share / 12.92 : Math.pow((share + 0.055) / 1.055, 2.4);
        });
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
    }
    function contrast(a, b) {
        var one = luminance(a) + 0.05, other = luminance(b) + 0.05;
        return Math.max(one, other) / Math.min(one, other);
    }
    // What is behind an element: in a picture, a rectangle that is drawn with it.
    function ground(element) {
        var layers = [], place = element.getBoundingClientRect();
        if (element instanceof SVGElement && place.bottom <= innerHeight && place.top >= 0) {
            var below = document.elementsFromPoint(place.left + place.width / 2, place.top + place.height / 2);
            below = below.slice(below.indexOf(element) + 1).filter(function (one) {
                return one instanceof SVGGeometryElement && getComputedStyle(one).fill !== 'none';
            });
            if (below.length > 0) return over(parse(getComputedStyle(below[0]).fill), {r: 255, g: 255, b: 255, a: 1});
        }
        for (var at = element; at; at = at.parentElement) {
            var box = at instanceof SVGElement && at.tagName === 'g' ? at.querySelector('rect') : null;
            if (box) layers.push(parse(getComputedStyle(box).fill));
            if (!(at instanceof SVGElement)) layers.push(parse(getComputedStyle(at).backgroundColor));
            if (layers.length && layers[layers.length - 1].a === 1) break;
        }
        var result = {r: 255, g: 255, b: 255, a: 1};
        layers.reverse().forEach(function (layer) { result = over(layer, result); });
        return result;
    }
    var walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), found = [], count = 0;
    while (walker.nextNode()) {
        var element = walker.currentNode.parentElement, style = getComputedStyle(element);
        if (!walker.currentNode.textContent.trim() || !element.getClientRects().length) continue;
        if (style.visibility !== 'visible' || element.closest('script, style, .unseen')) continue;
        var size = parseFloat(style.fontSize), isLarge = size >= 24 || (size >= 18.66 && style.fontWeight >= 600);
        var back = ground(element), isPicture = element instanceof SVGElement;
        var ratio = contrast(over(parse(isPicture ? style.fill : style.color), back), back);
        count++;
        if (ratio < (isLarge ? 3 : 4.5)) {
            found.push(ratio.toFixed(2) + ': "' + walker.currentNode.textContent.trim().slice(0, 40) + '" in ' +
                element.tagName + '.' + element.getAttribute('class'));
        }
    }
    return {count: count, found: found};
})();
