"""Reports: what a check, an attack or an evaluation found, for the terminal, for machines and as one page.

parts   findings with a traffic light, tables, figures, sections, and the report that holds them
page    the report as one self-contained HTML page
plot    drawings in one style
"""

from tacit.report.parts import AtLeast, AtMost, Figure, Finding, Light, Report, Section, Table

__all__ = ["AtLeast", "AtMost", "Figure", "Finding", "Light", "Report", "Section", "Table"]
