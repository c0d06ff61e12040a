-- macros
-- Parts of a whole: counts of one year and of another may not add up.
CREATE MACRO part_of(part, whole) AS least(part / whole, 1.0);
