-- A table of every type, and other ways to store one, for the crash fuzzer.

CREATE TABLE zoo (
  id   INT PRIMARY KEY AUTO_INCREMENT,
  t1   TINYINT, u8 BIGINT UNSIGNED, i8 BIGINT, dc DECIMAL(65,30), f4 FLOAT, d8 DOUBLE, bt BIT(64),
  dt   DATE, tm TIME(6), dtm DATETIME(6), ts TIMESTAMP(3) NULL, yr YEAR,
  ch   CHAR(20), vc VARCHAR(200), latin VARCHAR(50) CHARACTER SET latin1, u2 VARCHAR(50) CHARACTER SET ucs2,
  bin  VARBINARY(50), tx TEXT, lb LONGBLOB, js JSON, en ENUM('a','b',''), st SET('x','y','z'),
  ip   INET6, ui UUID,
  gen  INT GENERATED ALWAYS AS (t1 % 3) VIRTUAL,
  KEY (vc), KEY (dt, i8), KEY (gen), FULLTEXT KEY (tx)
);
INSERT INTO zoo (t1, u8, i8, dc, f4, d8, bt, dt, tm, dtm, ts, yr, ch, vc, latin, u2, bin, tx, lb, js, en, st, ip, ui) VALUES
  (0, 0, 0, 0, 0, 0, 0, '2026-01-31', '00:00:00', '2026-01-31 23:59:59', '2026-01-01 00:00:00', 2026, '', '', '', '', '', '', '', '{}', 'a', '', '::', '00000000-0000-0000-0000-000000000000'),
  (127, 18446744073709551615, 9223372036854775807, 99999999999999999999999999999999999.999999999999999999999999999999, 3.4e38, 1.7e308, ~0, '9999-12-31',
   '838:59:59', '9999-12-31 23:59:59.999999', '2038-01-19 03:14:07', 2155, 'abc', 'a,b,c', 'é', '가', x'FF00', 'the quick brown fox', REPEAT('x', 70000),
   '{"a":[1,2,{"b":null}],"c":"d"}', 'b', 'x,z', '2001:db8::1', 'ffffffff-ffff-ffff-ffff-ffffffffffff'),
  (-128, 1, -9223372036854775808, -1, -3.4e38, -1.7e308, 1, '1000-01-01', '-838:59:59', '1000-01-01 00:00:00', '1970-01-02 00:00:00', 1901, '가나다', '%_\\', 'ß', '나', x'00',
   'lorem ipsum dolor', NULL, '[[[[1]]]]', '', 'y', '::ffff:1.2.3.4', '123e4567-e89b-12d3-a456-426614174000');
INSERT INTO zoo () VALUES (), ();

CREATE TABLE parted (
  id INT, k INT, v VARCHAR(30), PRIMARY KEY (id, k)
) PARTITION BY RANGE (k) (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN MAXVALUE);
INSERT INTO parted SELECT seq, seq % 20, CONCAT('v', seq) FROM seq_1_to_40;

CREATE TABLE aria (a INT, b VARCHAR(100), KEY (a), FULLTEXT KEY (b)) ENGINE = Aria;
INSERT INTO aria SELECT seq, CONCAT('word', seq, ' common') FROM seq_1_to_30;

CREATE VIEW totals AS SELECT partner_id, COUNT(*) AS n, MAX(apply_count) AS top FROM campaign GROUP BY partner_id;
CREATE VIEW merged AS SELECT b.id, b.president, p.name FROM brand b LEFT JOIN partner p ON p.id = b.partner_id;
