"""The layout models a worker can run on."""

from enum import StrEnum


class LayoutName(StrEnum):
    """As named in `GLMOCR_LAYOUT` and in `produced_by.layout`."""

    PP_DOCLAYOUT_V3 = "pp_doclayout_v3"
    CDLA = "cdla"
    WHOLE_PAGE = "whole_page"
