"""Which layout model the settings ask for."""

from handler.layout.detector import Detector
from handler.layout.names import LayoutName
from handler.settings import Settings


def load_detector(settings: Settings) -> Detector:
    """The layout model, loaded. Each one is imported only when it is asked for: two of them need heavy packages."""
    match settings.layout:
        case LayoutName.PP_DOCLAYOUT_V3:
            from handler.layout import pp_doclayout_v3

            return pp_doclayout_v3.load(settings)
        case LayoutName.CDLA:
            from handler.layout.cdla import Cdla

            return Cdla()
        case LayoutName.WHOLE_PAGE:
            from handler.layout.whole_page import WholePage

            return WholePage()
