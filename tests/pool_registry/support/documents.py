"""Small real documents for tests."""

from __future__ import annotations


def pdf(*pages: str) -> bytes:
    """A PDF with one line of text on each page, written by hand: tests need no PDF writer."""
    count = len(pages)
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Count {count} /Kids [{' '.join(f'{4 + 2 * n} 0 R' for n in range(count))}] >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, text in enumerate(pages):
        stream = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET"
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {5 + 2 * number} 0 R "
            "/Resources << /Font << /F1 3 0 R >> >> >>"
        )
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
    written, places = "%PDF-1.4\n", []
    for number, body in enumerate(objects, start=1):
        places.append(len(written))
        written += f"{number} 0 obj\n{body}\nendobj\n"
    table = "".join(f"{place:010d} 00000 n \n" for place in places)
    trailer = f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{len(written)}\n%%EOF\n"
    return f"{written}xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}{trailer}".encode()
