"""How many pages a PDF has, by its page tree rather than by what the tree says of itself.

MuPDF and PDFium both believe /Count: where it is too small the last pages do not exist for them, where it is absurd
MuPDF refuses the file. The leaves tell the truth as long as the tree is whole.
"""

from handler.documents.lean import mupdf

DEPTH_LIMIT = 50
LEAVES_LIMIT = 200_000


def correct_counts(document: mupdf.PdfDocument, *, repaired: bool) -> None:
    """Set every /Count of the tree, in memory only, to the leaves below it.

    A root that claims more pages than there are is believed when the file was repaired: the rest was lost, and each
    missing page gets its own failure.
    """
    root = mupdf.pdf_dict_getp(mupdf.pdf_trailer(document), "Root/Pages")
    claimed = mupdf.pdf_to_int(mupdf.pdf_dict_gets(root, "Count"))
    leaves = _corrected(root, set(), 0)
    if repaired and leaves < claimed <= LEAVES_LIMIT:
        mupdf.pdf_dict_puts(root, "Count", mupdf.pdf_new_int(claimed))


def _corrected(node: mupdf.PdfObj, seen: set[int], depth: int) -> int:
    kids = mupdf.pdf_dict_gets(node, "Kids")
    if not mupdf.pdf_is_array(kids):
        return 1
    number = mupdf.pdf_to_num(node)
    if number in seen or depth > DEPTH_LIMIT:
        return 0
    seen.add(number)
    leaves = 0
    for index in range(min(mupdf.pdf_array_len(kids), LEAVES_LIMIT)):
        leaves += _corrected(mupdf.pdf_array_get(kids, index), seen, depth + 1)
        if leaves > LEAVES_LIMIT:
            break
    if mupdf.pdf_to_int(mupdf.pdf_dict_gets(node, "Count")) != leaves:
        mupdf.pdf_dict_puts(node, "Count", mupdf.pdf_new_int(leaves))
    return leaves
