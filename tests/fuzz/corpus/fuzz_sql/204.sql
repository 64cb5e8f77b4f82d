INSERT INTO o SELECT `card`, -- a comment with a ' quote
 id FROM pay // another
 /* and
 one */ WHERE id NOT IN (1, 2) AND card NOT LIKE 'a%' AND id NOT BETWEEN 3 AND 4;