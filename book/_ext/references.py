"""A bibliography whose labels are what the text cites: Cho et al., 2014."""

from pybtex.plugin import register_plugin
from pybtex.style.formatting.plain import Style
from pybtex.style.labels import BaseLabelStyle


class AuthorYear(BaseLabelStyle):
    def format_labels(self, entries):
        return [f"{authors(entry)}, {entry.fields['year']}" for entry in entries]


def authors(entry):
    names = [" ".join([*person.prelast_names, *person.last_names]) for person in entry.persons["author"]]
    return " and ".join(names) if len(names) < 3 else f"{names[0]} et al."


class Labelled(Style):
    default_label_style = "author_year"


def setup(app):
    register_plugin("pybtex.style.labels", "author_year", AuthorYear)
    register_plugin("pybtex.style.formatting", "labelled", Labelled)
    return {"parallel_read_safe": True}
