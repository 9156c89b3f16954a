// What is the same on every page of a report: its style sheet, and its script in four parts.
#ifndef PEN_SCHEDULER_REPORT_REPORT_PAGE_H
#define PEN_SCHEDULER_REPORT_REPORT_PAGE_H

// Lines, ended by NULL.
extern const char *const pen_report_style[];
extern const char *const pen_report_drawing[];
extern const char *const pen_report_panel[];
extern const char *const pen_report_timeline[];
extern const char *const pen_report_overview[];

#endif // PEN_SCHEDULER_REPORT_REPORT_PAGE_H
