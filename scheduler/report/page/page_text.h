// The contract of this folder: a page's frame, style sheet and script, which the Makefile turns
// into lines of C. Nothing is loaded from anywhere, whatever stands in the page: its frame forbids
// it.
//
// The script is one function over several files, in the order that the Makefile lists. It makes
// elements and sets their texts, and never reads markup: so a name out of a model can only be a
// text.
#ifndef PEN_SCHEDULER_REPORT_PAGE_PAGE_TEXT_H
#define PEN_SCHEDULER_REPORT_PAGE_PAGE_TEXT_H

#include <stddef.h>

// Lines, ended by NULL.
extern const char *const pen_page_frame[]; // "@style" stands for the style sheet, and so on
extern const char *const pen_page_style[];
extern const char *const pen_page_script[];

#endif // PEN_SCHEDULER_REPORT_PAGE_PAGE_TEXT_H
