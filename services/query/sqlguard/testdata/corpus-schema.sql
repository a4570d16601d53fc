-- The schema that the case tables speak of: MariaDB 10.11, database hub_src.
-- Every accepted case tagged both or mariadb runs on it; 1100 campaigns reach
-- past a cap of 1000 rows.

CREATE TABLE partner (
  id   INT PRIMARY KEY,
  name VARCHAR(50) NOT NULL
);
INSERT INTO partner SELECT seq, CONCAT('P', seq) FROM seq_1_to_12;

CREATE TABLE brand (
  id         INT PRIMARY KEY,
  partner_id INT NOT NULL,
  president  VARCHAR(100) NOT NULL,
  meta       JSON,
  KEY ix_partner (partner_id),
  FULLTEXT KEY ft_president (president)
);
INSERT INTO brand SELECT seq, seq % 12 + 1, CONCAT('kim ', seq), JSON_OBJECT('tags', JSON_ARRAY('a', seq)) FROM seq_1_to_40;

CREATE TABLE campaign (
  id          INT PRIMARY KEY,
  partner_id  INT NOT NULL,
  name        VARCHAR(100) NOT NULL,
  status_code CHAR(4) NOT NULL,
  start_at    DATETIME NOT NULL,
  apply_count INT NOT NULL,
  `update`    INT NOT NULL DEFAULT 0,
  `into`      INT NOT NULL DEFAULT 0,
  KEY ix_campaign_partner (partner_id)
);
INSERT INTO campaign (id, partner_id, name, status_code, start_at, apply_count)
  SELECT seq, seq % 12 + 1, CONCAT('C', seq), 1206 + seq % 6, '2026-01-01' + INTERVAL seq HOUR, seq * 7919 % 1103 FROM seq_1_to_1100;

CREATE TABLE category (
  category_id INT PRIMARY KEY,
  parent_id   INT NOT NULL
);
INSERT INTO category VALUES (1, 0), (2, 0), (3, 1), (4, 1), (5, 3), (6, 5);

CREATE TABLE member (
  id   INT PRIMARY KEY AUTO_INCREMENT,
  name VARCHAR(50)
);
INSERT INTO member (name) VALUES ('m1'), ('m2'), ('m3');

CREATE TABLE `회원` (
  `번호` INT PRIMARY KEY,
  `이름` VARCHAR(50)
);
INSERT INTO `회원` VALUES (1, '가'), (2, '나');

CREATE TABLE price_hist (
  id    INT PRIMARY KEY,
  price INT
) WITH SYSTEM VERSIONING;
INSERT INTO price_hist VALUES (1, 100), (2, 200);
UPDATE price_hist SET price = 150 WHERE id = 1;

CREATE TABLE my_isam (
  id INT PRIMARY KEY
) ENGINE = MyISAM;
INSERT INTO my_isam VALUES (1), (2);

CREATE SEQUENCE seq1;

CREATE FUNCTION f_write() RETURNS INT MODIFIES SQL DATA
BEGIN
  INSERT INTO member (name) VALUES ('written by f_write');
  RETURN 1;
END;

CREATE PROCEDURE p_write()
  INSERT INTO member (name) VALUES ('written by p_write');
