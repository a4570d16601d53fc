-- Questions of marketing on the marketplace's schema, as a good analyst writes them: none has a warning. One a line.
-- How many there are.
SELECT COUNT(*) AS brands FROM brand
SELECT COUNT(*) AS partners, COUNT(business_no) AS with_business_no FROM partner
SELECT COUNT(DISTINCT partner_id) AS partners FROM brand
SELECT COUNT(DISTINCT c.brand_id) AS brands FROM campaign c WHERE c.status_code = '1209'
SELECT country_code, COUNT(*) AS brands FROM brand GROUP BY country_code ORDER BY brands DESC, country_code
SELECT status_code, COUNT(*) AS n, SUM(offer_count) AS places, SUM(apply_count) AS applications FROM campaign GROUP BY status_code ORDER BY n DESC
SELECT kind, COUNT(*) AS n, SUM(amount_liter) AS liters FROM deposit_transaction GROUP BY kind
SELECT status, COUNT(*) AS n, ROUND(100 * COUNT(*) / SUM(COUNT(*)) OVER (), 1) AS percent FROM campaign_application GROUP BY status
SELECT rating, COUNT(*) AS n FROM review GROUP BY rating ORDER BY rating DESC
SELECT account_status, email_verified, COUNT(*) AS n FROM partner_admin GROUP BY account_status, email_verified
SELECT COUNT(*) AS members, COUNT(DISTINCT country_code) AS countries FROM member
SELECT (SELECT COUNT(*) FROM brand) AS brands, (SELECT COUNT(*) FROM campaign) AS campaigns, (SELECT COUNT(*) FROM member) AS members
-- From 2025-10-01 to 2026-01-01.
SELECT COUNT(*) AS campaigns FROM campaign WHERE start_at >= '2025-10-01' AND start_at < '2026-01-01'
SELECT DATE_FORMAT(start_at, '%Y-%m') AS month, COUNT(*) AS campaigns, SUM(apply_count) AS applications FROM campaign WHERE start_at >= '2025-10-01' AND start_at < '2026-01-01' GROUP BY month ORDER BY month
SELECT COUNT(*) AS brands FROM brand WHERE created_at >= '2025-10-01' AND created_at < '2026-01-01'
SELECT kind, SUM(amount_liter) AS liters FROM deposit_transaction WHERE created_at >= '2025-10-01' AND created_at < '2026-01-01' GROUP BY kind ORDER BY kind
SELECT d.brand_id, b.brand_name, SUM(d.amount_liter) AS spent FROM deposit_transaction d JOIN brand b ON b.brand_id = d.brand_id WHERE d.kind = 'SPEND' AND d.created_at >= '2025-10-01' AND d.created_at < '2026-01-01' GROUP BY d.brand_id, b.brand_name ORDER BY spent LIMIT 20
SELECT b.brand_id, b.brand_name FROM brand b WHERE NOT EXISTS (SELECT 1 FROM campaign c WHERE c.brand_id = b.brand_id AND c.start_at >= '2025-10-01' AND c.start_at < '2026-01-01') ORDER BY b.brand_id LIMIT 100
SELECT b.brand_id, b.brand_name, COUNT(c.campaign_id) AS campaigns FROM brand b LEFT JOIN campaign c ON c.brand_id = b.brand_id AND c.start_at >= '2025-10-01' AND c.start_at < '2026-01-01' GROUP BY b.brand_id, b.brand_name HAVING campaigns = 0 ORDER BY b.brand_id
SELECT AVG(r.rating) AS mean, COUNT(*) AS reviews FROM review r WHERE r.created_at >= '2025-10-01' AND r.created_at < '2026-01-01'
SELECT HOUR(applied_at + INTERVAL 9 HOUR) AS hour_in_seoul, COUNT(*) AS n FROM campaign_application WHERE applied_at >= '2025-10-01' AND applied_at < '2026-01-01' GROUP BY hour_in_seoul ORDER BY hour_in_seoul
SELECT WEEKDAY(start_at) AS weekday, AVG(apply_count) AS mean FROM campaign WHERE start_at >= '2025-10-01' AND start_at < '2026-01-01' AND status_code = '1209' GROUP BY weekday ORDER BY weekday
SELECT YEARWEEK(applied_at, 3) AS week, COUNT(*) AS n FROM campaign_application WHERE applied_at >= '2025-10-01' AND applied_at < '2026-01-01' GROUP BY week ORDER BY week
SELECT DATE(created_at) AS day, COUNT(*) AS n FROM member WHERE created_at >= '2025-10-01' AND created_at < '2026-01-01' GROUP BY day ORDER BY day
SELECT COUNT(*) AS n FROM campaign WHERE DATE(created_at) BETWEEN '2025-10-01' AND '2026-01-01'
SELECT COUNT(*) AS running FROM campaign WHERE start_at < '2026-01-01' AND (end_at IS NULL OR end_at >= '2025-10-01') AND status_code IN ('1206', '1209')
SELECT p.partner_id, p.name, MAX(c.start_at) AS last_start FROM partner p JOIN campaign c ON c.partner_id = p.partner_id GROUP BY p.partner_id, p.name HAVING MAX(c.start_at) < '2025-10-01' ORDER BY last_start DESC LIMIT 50
SELECT COUNT(*) AS n FROM deposit_transaction WHERE created_at BETWEEN '2025-10-01 00:00:00' AND '2026-01-01 23:59:59.999999'
SELECT LAST_DAY(start_at) AS month_end, COUNT(*) AS n FROM campaign WHERE start_at >= '2025-10-01' AND start_at < '2026-01-01' GROUP BY month_end
SELECT SUM(start_at < '2026-01-01') AS before_it, SUM(start_at >= '2026-01-01') AS after_it FROM campaign
-- From 2026-01-01 to 2026-04-01.
SELECT COUNT(*) AS campaigns FROM campaign WHERE start_at >= '2026-01-01' AND start_at < '2026-04-01'
SELECT DATE_FORMAT(start_at, '%Y-%m') AS month, COUNT(*) AS campaigns, SUM(apply_count) AS applications FROM campaign WHERE start_at >= '2026-01-01' AND start_at < '2026-04-01' GROUP BY month ORDER BY month
SELECT COUNT(*) AS brands FROM brand WHERE created_at >= '2026-01-01' AND created_at < '2026-04-01'
SELECT kind, SUM(amount_liter) AS liters FROM deposit_transaction WHERE created_at >= '2026-01-01' AND created_at < '2026-04-01' GROUP BY kind ORDER BY kind
SELECT d.brand_id, b.brand_name, SUM(d.amount_liter) AS spent FROM deposit_transaction d JOIN brand b ON b.brand_id = d.brand_id WHERE d.kind = 'SPEND' AND d.created_at >= '2026-01-01' AND d.created_at < '2026-04-01' GROUP BY d.brand_id, b.brand_name ORDER BY spent LIMIT 20
SELECT b.brand_id, b.brand_name FROM brand b WHERE NOT EXISTS (SELECT 1 FROM campaign c WHERE c.brand_id = b.brand_id AND c.start_at >= '2026-01-01' AND c.start_at < '2026-04-01') ORDER BY b.brand_id LIMIT 100
SELECT b.brand_id, b.brand_name, COUNT(c.campaign_id) AS campaigns FROM brand b LEFT JOIN campaign c ON c.brand_id = b.brand_id AND c.start_at >= '2026-01-01' AND c.start_at < '2026-04-01' GROUP BY b.brand_id, b.brand_name HAVING campaigns = 0 ORDER BY b.brand_id
SELECT AVG(r.rating) AS mean, COUNT(*) AS reviews FROM review r WHERE r.created_at >= '2026-01-01' AND r.created_at < '2026-04-01'
SELECT HOUR(applied_at + INTERVAL 9 HOUR) AS hour_in_seoul, COUNT(*) AS n FROM campaign_application WHERE applied_at >= '2026-01-01' AND applied_at < '2026-04-01' GROUP BY hour_in_seoul ORDER BY hour_in_seoul
SELECT WEEKDAY(start_at) AS weekday, AVG(apply_count) AS mean FROM campaign WHERE start_at >= '2026-01-01' AND start_at < '2026-04-01' AND status_code = '1209' GROUP BY weekday ORDER BY weekday
SELECT YEARWEEK(applied_at, 3) AS week, COUNT(*) AS n FROM campaign_application WHERE applied_at >= '2026-01-01' AND applied_at < '2026-04-01' GROUP BY week ORDER BY week
SELECT DATE(created_at) AS day, COUNT(*) AS n FROM member WHERE created_at >= '2026-01-01' AND created_at < '2026-04-01' GROUP BY day ORDER BY day
SELECT COUNT(*) AS n FROM campaign WHERE DATE(created_at) BETWEEN '2026-01-01' AND '2026-04-01'
SELECT COUNT(*) AS running FROM campaign WHERE start_at < '2026-04-01' AND (end_at IS NULL OR end_at >= '2026-01-01') AND status_code IN ('1206', '1209')
SELECT p.partner_id, p.name, MAX(c.start_at) AS last_start FROM partner p JOIN campaign c ON c.partner_id = p.partner_id GROUP BY p.partner_id, p.name HAVING MAX(c.start_at) < '2026-01-01' ORDER BY last_start DESC LIMIT 50
SELECT COUNT(*) AS n FROM deposit_transaction WHERE created_at BETWEEN '2026-01-01 00:00:00' AND '2026-04-01 23:59:59.999999'
SELECT LAST_DAY(start_at) AS month_end, COUNT(*) AS n FROM campaign WHERE start_at >= '2026-01-01' AND start_at < '2026-04-01' GROUP BY month_end
SELECT SUM(start_at < '2026-04-01') AS before_it, SUM(start_at >= '2026-04-01') AS after_it FROM campaign
-- From 2026-04-01 to 2026-07-01.
SELECT COUNT(*) AS campaigns FROM campaign WHERE start_at >= '2026-04-01' AND start_at < '2026-07-01'
SELECT DATE_FORMAT(start_at, '%Y-%m') AS month, COUNT(*) AS campaigns, SUM(apply_count) AS applications FROM campaign WHERE start_at >= '2026-04-01' AND start_at < '2026-07-01' GROUP BY month ORDER BY month
SELECT COUNT(*) AS brands FROM brand WHERE created_at >= '2026-04-01' AND created_at < '2026-07-01'
SELECT kind, SUM(amount_liter) AS liters FROM deposit_transaction WHERE created_at >= '2026-04-01' AND created_at < '2026-07-01' GROUP BY kind ORDER BY kind
SELECT d.brand_id, b.brand_name, SUM(d.amount_liter) AS spent FROM deposit_transaction d JOIN brand b ON b.brand_id = d.brand_id WHERE d.kind = 'SPEND' AND d.created_at >= '2026-04-01' AND d.created_at < '2026-07-01' GROUP BY d.brand_id, b.brand_name ORDER BY spent LIMIT 20
SELECT b.brand_id, b.brand_name FROM brand b WHERE NOT EXISTS (SELECT 1 FROM campaign c WHERE c.brand_id = b.brand_id AND c.start_at >= '2026-04-01' AND c.start_at < '2026-07-01') ORDER BY b.brand_id LIMIT 100
SELECT b.brand_id, b.brand_name, COUNT(c.campaign_id) AS campaigns FROM brand b LEFT JOIN campaign c ON c.brand_id = b.brand_id AND c.start_at >= '2026-04-01' AND c.start_at < '2026-07-01' GROUP BY b.brand_id, b.brand_name HAVING campaigns = 0 ORDER BY b.brand_id
SELECT AVG(r.rating) AS mean, COUNT(*) AS reviews FROM review r WHERE r.created_at >= '2026-04-01' AND r.created_at < '2026-07-01'
SELECT HOUR(applied_at + INTERVAL 9 HOUR) AS hour_in_seoul, COUNT(*) AS n FROM campaign_application WHERE applied_at >= '2026-04-01' AND applied_at < '2026-07-01' GROUP BY hour_in_seoul ORDER BY hour_in_seoul
SELECT WEEKDAY(start_at) AS weekday, AVG(apply_count) AS mean FROM campaign WHERE start_at >= '2026-04-01' AND start_at < '2026-07-01' AND status_code = '1209' GROUP BY weekday ORDER BY weekday
SELECT YEARWEEK(applied_at, 3) AS week, COUNT(*) AS n FROM campaign_application WHERE applied_at >= '2026-04-01' AND applied_at < '2026-07-01' GROUP BY week ORDER BY week
SELECT DATE(created_at) AS day, COUNT(*) AS n FROM member WHERE created_at >= '2026-04-01' AND created_at < '2026-07-01' GROUP BY day ORDER BY day
SELECT COUNT(*) AS n FROM campaign WHERE DATE(created_at) BETWEEN '2026-04-01' AND '2026-07-01'
SELECT COUNT(*) AS running FROM campaign WHERE start_at < '2026-07-01' AND (end_at IS NULL OR end_at >= '2026-04-01') AND status_code IN ('1206', '1209')
SELECT p.partner_id, p.name, MAX(c.start_at) AS last_start FROM partner p JOIN campaign c ON c.partner_id = p.partner_id GROUP BY p.partner_id, p.name HAVING MAX(c.start_at) < '2026-04-01' ORDER BY last_start DESC LIMIT 50
SELECT COUNT(*) AS n FROM deposit_transaction WHERE created_at BETWEEN '2026-04-01 00:00:00' AND '2026-07-01 23:59:59.999999'
SELECT LAST_DAY(start_at) AS month_end, COUNT(*) AS n FROM campaign WHERE start_at >= '2026-04-01' AND start_at < '2026-07-01' GROUP BY month_end
SELECT SUM(start_at < '2026-07-01') AS before_it, SUM(start_at >= '2026-07-01') AS after_it FROM campaign
-- From 2025-07-01 to 2026-07-01.
SELECT COUNT(*) AS campaigns FROM campaign WHERE start_at >= '2025-07-01' AND start_at < '2026-07-01'
SELECT DATE_FORMAT(start_at, '%Y-%m') AS month, COUNT(*) AS campaigns, SUM(apply_count) AS applications FROM campaign WHERE start_at >= '2025-07-01' AND start_at < '2026-07-01' GROUP BY month ORDER BY month
SELECT COUNT(*) AS brands FROM brand WHERE created_at >= '2025-07-01' AND created_at < '2026-07-01'
SELECT kind, SUM(amount_liter) AS liters FROM deposit_transaction WHERE created_at >= '2025-07-01' AND created_at < '2026-07-01' GROUP BY kind ORDER BY kind
SELECT d.brand_id, b.brand_name, SUM(d.amount_liter) AS spent FROM deposit_transaction d JOIN brand b ON b.brand_id = d.brand_id WHERE d.kind = 'SPEND' AND d.created_at >= '2025-07-01' AND d.created_at < '2026-07-01' GROUP BY d.brand_id, b.brand_name ORDER BY spent LIMIT 20
SELECT b.brand_id, b.brand_name FROM brand b WHERE NOT EXISTS (SELECT 1 FROM campaign c WHERE c.brand_id = b.brand_id AND c.start_at >= '2025-07-01' AND c.start_at < '2026-07-01') ORDER BY b.brand_id LIMIT 100
SELECT b.brand_id, b.brand_name, COUNT(c.campaign_id) AS campaigns FROM brand b LEFT JOIN campaign c ON c.brand_id = b.brand_id AND c.start_at >= '2025-07-01' AND c.start_at < '2026-07-01' GROUP BY b.brand_id, b.brand_name HAVING campaigns = 0 ORDER BY b.brand_id
SELECT AVG(r.rating) AS mean, COUNT(*) AS reviews FROM review r WHERE r.created_at >= '2025-07-01' AND r.created_at < '2026-07-01'
SELECT HOUR(applied_at + INTERVAL 9 HOUR) AS hour_in_seoul, COUNT(*) AS n FROM campaign_application WHERE applied_at >= '2025-07-01' AND applied_at < '2026-07-01' GROUP BY hour_in_seoul ORDER BY hour_in_seoul
SELECT WEEKDAY(start_at) AS weekday, AVG(apply_count) AS mean FROM campaign WHERE start_at >= '2025-07-01' AND start_at < '2026-07-01' AND status_code = '1209' GROUP BY weekday ORDER BY weekday
SELECT YEARWEEK(applied_at, 3) AS week, COUNT(*) AS n FROM campaign_application WHERE applied_at >= '2025-07-01' AND applied_at < '2026-07-01' GROUP BY week ORDER BY week
SELECT DATE(created_at) AS day, COUNT(*) AS n FROM member WHERE created_at >= '2025-07-01' AND created_at < '2026-07-01' GROUP BY day ORDER BY day
SELECT COUNT(*) AS n FROM campaign WHERE DATE(created_at) BETWEEN '2025-07-01' AND '2026-07-01'
SELECT COUNT(*) AS running FROM campaign WHERE start_at < '2026-07-01' AND (end_at IS NULL OR end_at >= '2025-07-01') AND status_code IN ('1206', '1209')
SELECT p.partner_id, p.name, MAX(c.start_at) AS last_start FROM partner p JOIN campaign c ON c.partner_id = p.partner_id GROUP BY p.partner_id, p.name HAVING MAX(c.start_at) < '2025-07-01' ORDER BY last_start DESC LIMIT 50
SELECT COUNT(*) AS n FROM deposit_transaction WHERE created_at BETWEEN '2025-07-01 00:00:00' AND '2026-07-01 23:59:59.999999'
SELECT LAST_DAY(start_at) AS month_end, COUNT(*) AS n FROM campaign WHERE start_at >= '2025-07-01' AND start_at < '2026-07-01' GROUP BY month_end
SELECT SUM(start_at < '2026-07-01') AS before_it, SUM(start_at >= '2026-07-01') AS after_it FROM campaign
-- From 2026-06-01 to 2026-07-01.
SELECT COUNT(*) AS campaigns FROM campaign WHERE start_at >= '2026-06-01' AND start_at < '2026-07-01'
SELECT DATE_FORMAT(start_at, '%Y-%m') AS month, COUNT(*) AS campaigns, SUM(apply_count) AS applications FROM campaign WHERE start_at >= '2026-06-01' AND start_at < '2026-07-01' GROUP BY month ORDER BY month
SELECT COUNT(*) AS brands FROM brand WHERE created_at >= '2026-06-01' AND created_at < '2026-07-01'
SELECT kind, SUM(amount_liter) AS liters FROM deposit_transaction WHERE created_at >= '2026-06-01' AND created_at < '2026-07-01' GROUP BY kind ORDER BY kind
SELECT d.brand_id, b.brand_name, SUM(d.amount_liter) AS spent FROM deposit_transaction d JOIN brand b ON b.brand_id = d.brand_id WHERE d.kind = 'SPEND' AND d.created_at >= '2026-06-01' AND d.created_at < '2026-07-01' GROUP BY d.brand_id, b.brand_name ORDER BY spent LIMIT 20
SELECT b.brand_id, b.brand_name FROM brand b WHERE NOT EXISTS (SELECT 1 FROM campaign c WHERE c.brand_id = b.brand_id AND c.start_at >= '2026-06-01' AND c.start_at < '2026-07-01') ORDER BY b.brand_id LIMIT 100
SELECT b.brand_id, b.brand_name, COUNT(c.campaign_id) AS campaigns FROM brand b LEFT JOIN campaign c ON c.brand_id = b.brand_id AND c.start_at >= '2026-06-01' AND c.start_at < '2026-07-01' GROUP BY b.brand_id, b.brand_name HAVING campaigns = 0 ORDER BY b.brand_id
SELECT AVG(r.rating) AS mean, COUNT(*) AS reviews FROM review r WHERE r.created_at >= '2026-06-01' AND r.created_at < '2026-07-01'
SELECT HOUR(applied_at + INTERVAL 9 HOUR) AS hour_in_seoul, COUNT(*) AS n FROM campaign_application WHERE applied_at >= '2026-06-01' AND applied_at < '2026-07-01' GROUP BY hour_in_seoul ORDER BY hour_in_seoul
SELECT WEEKDAY(start_at) AS weekday, AVG(apply_count) AS mean FROM campaign WHERE start_at >= '2026-06-01' AND start_at < '2026-07-01' AND status_code = '1209' GROUP BY weekday ORDER BY weekday
SELECT YEARWEEK(applied_at, 3) AS week, COUNT(*) AS n FROM campaign_application WHERE applied_at >= '2026-06-01' AND applied_at < '2026-07-01' GROUP BY week ORDER BY week
SELECT DATE(created_at) AS day, COUNT(*) AS n FROM member WHERE created_at >= '2026-06-01' AND created_at < '2026-07-01' GROUP BY day ORDER BY day
SELECT COUNT(*) AS n FROM campaign WHERE DATE(created_at) BETWEEN '2026-06-01' AND '2026-07-01'
SELECT COUNT(*) AS running FROM campaign WHERE start_at < '2026-07-01' AND (end_at IS NULL OR end_at >= '2026-06-01') AND status_code IN ('1206', '1209')
SELECT p.partner_id, p.name, MAX(c.start_at) AS last_start FROM partner p JOIN campaign c ON c.partner_id = p.partner_id GROUP BY p.partner_id, p.name HAVING MAX(c.start_at) < '2026-06-01' ORDER BY last_start DESC LIMIT 50
SELECT COUNT(*) AS n FROM deposit_transaction WHERE created_at BETWEEN '2026-06-01 00:00:00' AND '2026-07-01 23:59:59.999999'
SELECT LAST_DAY(start_at) AS month_end, COUNT(*) AS n FROM campaign WHERE start_at >= '2026-06-01' AND start_at < '2026-07-01' GROUP BY month_end
SELECT SUM(start_at < '2026-07-01') AS before_it, SUM(start_at >= '2026-07-01') AS after_it FROM campaign
-- The last 7 DAY.
SELECT COUNT(*) AS campaigns FROM campaign WHERE start_at >= CURDATE() - INTERVAL 7 DAY AND start_at < CURDATE()
SELECT COUNT(*) AS applications FROM campaign_application WHERE applied_at >= DATE_SUB(NOW(), INTERVAL 7 DAY)
SELECT b.brand_id, b.brand_name FROM brand b JOIN (SELECT brand_id, MAX(start_at) AS last_start FROM campaign GROUP BY brand_id) l ON l.brand_id = b.brand_id WHERE l.last_start < NOW() - INTERVAL 7 DAY ORDER BY l.last_start LIMIT 100
SELECT a.partner_admin_id, a.name, a.email FROM partner_admin a WHERE a.email_verified = 1 AND a.account_status = 'READY' AND (a.last_login_at IS NULL OR a.last_login_at < NOW() - INTERVAL 7 DAY) LIMIT 100
SELECT d.brand_id, SUM(-d.amount_liter) AS spent FROM deposit_transaction d WHERE d.kind = 'SPEND' AND d.created_at >= NOW() - INTERVAL 7 DAY GROUP BY d.brand_id ORDER BY spent DESC LIMIT 10
SELECT COUNT(*) AS ends_soon FROM campaign WHERE end_at >= CURDATE() AND end_at < CURDATE() + INTERVAL 7 DAY
-- The last 30 DAY.
SELECT COUNT(*) AS campaigns FROM campaign WHERE start_at >= CURDATE() - INTERVAL 30 DAY AND start_at < CURDATE()
SELECT COUNT(*) AS applications FROM campaign_application WHERE applied_at >= DATE_SUB(NOW(), INTERVAL 30 DAY)
SELECT b.brand_id, b.brand_name FROM brand b JOIN (SELECT brand_id, MAX(start_at) AS last_start FROM campaign GROUP BY brand_id) l ON l.brand_id = b.brand_id WHERE l.last_start < NOW() - INTERVAL 30 DAY ORDER BY l.last_start LIMIT 100
SELECT a.partner_admin_id, a.name, a.email FROM partner_admin a WHERE a.email_verified = 1 AND a.account_status = 'READY' AND (a.last_login_at IS NULL OR a.last_login_at < NOW() - INTERVAL 30 DAY) LIMIT 100
SELECT d.brand_id, SUM(-d.amount_liter) AS spent FROM deposit_transaction d WHERE d.kind = 'SPEND' AND d.created_at >= NOW() - INTERVAL 30 DAY GROUP BY d.brand_id ORDER BY spent DESC LIMIT 10
SELECT COUNT(*) AS ends_soon FROM campaign WHERE end_at >= CURDATE() AND end_at < CURDATE() + INTERVAL 30 DAY
-- The last 90 DAY.
SELECT COUNT(*) AS campaigns FROM campaign WHERE start_at >= CURDATE() - INTERVAL 90 DAY AND start_at < CURDATE()
SELECT COUNT(*) AS applications FROM campaign_application WHERE applied_at >= DATE_SUB(NOW(), INTERVAL 90 DAY)
SELECT b.brand_id, b.brand_name FROM brand b JOIN (SELECT brand_id, MAX(start_at) AS last_start FROM campaign GROUP BY brand_id) l ON l.brand_id = b.brand_id WHERE l.last_start < NOW() - INTERVAL 90 DAY ORDER BY l.last_start LIMIT 100
SELECT a.partner_admin_id, a.name, a.email FROM partner_admin a WHERE a.email_verified = 1 AND a.account_status = 'READY' AND (a.last_login_at IS NULL OR a.last_login_at < NOW() - INTERVAL 90 DAY) LIMIT 100
SELECT d.brand_id, SUM(-d.amount_liter) AS spent FROM deposit_transaction d WHERE d.kind = 'SPEND' AND d.created_at >= NOW() - INTERVAL 90 DAY GROUP BY d.brand_id ORDER BY spent DESC LIMIT 10
SELECT COUNT(*) AS ends_soon FROM campaign WHERE end_at >= CURDATE() AND end_at < CURDATE() + INTERVAL 90 DAY
-- The last 6 MONTH.
SELECT COUNT(*) AS campaigns FROM campaign WHERE start_at >= CURDATE() - INTERVAL 6 MONTH AND start_at < CURDATE()
SELECT COUNT(*) AS applications FROM campaign_application WHERE applied_at >= DATE_SUB(NOW(), INTERVAL 6 MONTH)
SELECT b.brand_id, b.brand_name FROM brand b JOIN (SELECT brand_id, MAX(start_at) AS last_start FROM campaign GROUP BY brand_id) l ON l.brand_id = b.brand_id WHERE l.last_start < NOW() - INTERVAL 6 MONTH ORDER BY l.last_start LIMIT 100
SELECT a.partner_admin_id, a.name, a.email FROM partner_admin a WHERE a.email_verified = 1 AND a.account_status = 'READY' AND (a.last_login_at IS NULL OR a.last_login_at < NOW() - INTERVAL 6 MONTH) LIMIT 100
SELECT d.brand_id, SUM(-d.amount_liter) AS spent FROM deposit_transaction d WHERE d.kind = 'SPEND' AND d.created_at >= NOW() - INTERVAL 6 MONTH GROUP BY d.brand_id ORDER BY spent DESC LIMIT 10
SELECT COUNT(*) AS ends_soon FROM campaign WHERE end_at >= CURDATE() AND end_at < CURDATE() + INTERVAL 6 MONTH
-- The last 1 YEAR.
SELECT COUNT(*) AS campaigns FROM campaign WHERE start_at >= CURDATE() - INTERVAL 1 YEAR AND start_at < CURDATE()
SELECT COUNT(*) AS applications FROM campaign_application WHERE applied_at >= DATE_SUB(NOW(), INTERVAL 1 YEAR)
SELECT b.brand_id, b.brand_name FROM brand b JOIN (SELECT brand_id, MAX(start_at) AS last_start FROM campaign GROUP BY brand_id) l ON l.brand_id = b.brand_id WHERE l.last_start < NOW() - INTERVAL 1 YEAR ORDER BY l.last_start LIMIT 100
SELECT a.partner_admin_id, a.name, a.email FROM partner_admin a WHERE a.email_verified = 1 AND a.account_status = 'READY' AND (a.last_login_at IS NULL OR a.last_login_at < NOW() - INTERVAL 1 YEAR) LIMIT 100
SELECT d.brand_id, SUM(-d.amount_liter) AS spent FROM deposit_transaction d WHERE d.kind = 'SPEND' AND d.created_at >= NOW() - INTERVAL 1 YEAR GROUP BY d.brand_id ORDER BY spent DESC LIMIT 10
SELECT COUNT(*) AS ends_soon FROM campaign WHERE end_at >= CURDATE() AND end_at < CURDATE() + INTERVAL 1 YEAR
-- The last 2 WEEK.
SELECT COUNT(*) AS campaigns FROM campaign WHERE start_at >= CURDATE() - INTERVAL 2 WEEK AND start_at < CURDATE()
SELECT COUNT(*) AS applications FROM campaign_application WHERE applied_at >= DATE_SUB(NOW(), INTERVAL 2 WEEK)
SELECT b.brand_id, b.brand_name FROM brand b JOIN (SELECT brand_id, MAX(start_at) AS last_start FROM campaign GROUP BY brand_id) l ON l.brand_id = b.brand_id WHERE l.last_start < NOW() - INTERVAL 2 WEEK ORDER BY l.last_start LIMIT 100
SELECT a.partner_admin_id, a.name, a.email FROM partner_admin a WHERE a.email_verified = 1 AND a.account_status = 'READY' AND (a.last_login_at IS NULL OR a.last_login_at < NOW() - INTERVAL 2 WEEK) LIMIT 100
SELECT d.brand_id, SUM(-d.amount_liter) AS spent FROM deposit_transaction d WHERE d.kind = 'SPEND' AND d.created_at >= NOW() - INTERVAL 2 WEEK GROUP BY d.brand_id ORDER BY spent DESC LIMIT 10
SELECT COUNT(*) AS ends_soon FROM campaign WHERE end_at >= CURDATE() AND end_at < CURDATE() + INTERVAL 2 WEEK
-- The last 4 QUARTER.
SELECT COUNT(*) AS campaigns FROM campaign WHERE start_at >= CURDATE() - INTERVAL 4 QUARTER AND start_at < CURDATE()
SELECT COUNT(*) AS applications FROM campaign_application WHERE applied_at >= DATE_SUB(NOW(), INTERVAL 4 QUARTER)
SELECT b.brand_id, b.brand_name FROM brand b JOIN (SELECT brand_id, MAX(start_at) AS last_start FROM campaign GROUP BY brand_id) l ON l.brand_id = b.brand_id WHERE l.last_start < NOW() - INTERVAL 4 QUARTER ORDER BY l.last_start LIMIT 100
SELECT a.partner_admin_id, a.name, a.email FROM partner_admin a WHERE a.email_verified = 1 AND a.account_status = 'READY' AND (a.last_login_at IS NULL OR a.last_login_at < NOW() - INTERVAL 4 QUARTER) LIMIT 100
SELECT d.brand_id, SUM(-d.amount_liter) AS spent FROM deposit_transaction d WHERE d.kind = 'SPEND' AND d.created_at >= NOW() - INTERVAL 4 QUARTER GROUP BY d.brand_id ORDER BY spent DESC LIMIT 10
SELECT COUNT(*) AS ends_soon FROM campaign WHERE end_at >= CURDATE() AND end_at < CURDATE() + INTERVAL 4 QUARTER
-- Of KR.
SELECT COUNT(*) AS brands FROM brand WHERE country_code = 'KR'
SELECT b.brand_id, b.brand_name, p.name AS partner FROM brand b JOIN partner p ON p.partner_id = b.partner_id WHERE b.country_code = 'KR' ORDER BY b.brand_name LIMIT 50
SELECT COUNT(DISTINCT a.member_id) AS members FROM campaign_application a JOIN campaign c ON c.campaign_id = a.campaign_id JOIN brand b ON b.brand_id = c.brand_id WHERE b.country_code = 'KR' AND a.status IN ('SELECTED', 'DONE')
SELECT c.campaign_id, c.name, c.apply_count / NULLIF(c.offer_count, 0) AS competition FROM campaign c JOIN brand b USING (brand_id) WHERE b.country_code = 'KR' AND c.status_code = '1209' ORDER BY competition DESC LIMIT 10
SELECT n.category_name, COUNT(*) AS brands FROM brand b JOIN category_name n ON n.category_id = b.category_id AND n.language = 'ko' WHERE b.country_code = 'KR' GROUP BY n.category_name ORDER BY brands DESC LIMIT 20
SELECT AVG(r.rating) AS mean FROM review r JOIN campaign c ON c.campaign_id = r.campaign_id JOIN brand b ON b.brand_id = c.brand_id WHERE b.country_code = 'KR'
SELECT SUM(c.offer_count) AS places FROM campaign c JOIN brand b ON b.brand_id = c.brand_id WHERE b.country_code = 'KR'
SELECT p.partner_id, p.name FROM partner p WHERE p.country_code = 'KR' AND p.partner_id NOT IN (SELECT b.partner_id FROM brand b)
SELECT YEAR(m.created_at) AS joined, COUNT(*) AS members FROM member m WHERE m.country_code = 'KR' GROUP BY joined ORDER BY joined
-- Of JP.
SELECT COUNT(*) AS brands FROM brand WHERE country_code = 'JP'
SELECT b.brand_id, b.brand_name, p.name AS partner FROM brand b JOIN partner p ON p.partner_id = b.partner_id WHERE b.country_code = 'JP' ORDER BY b.brand_name LIMIT 50
SELECT COUNT(DISTINCT a.member_id) AS members FROM campaign_application a JOIN campaign c ON c.campaign_id = a.campaign_id JOIN brand b ON b.brand_id = c.brand_id WHERE b.country_code = 'JP' AND a.status IN ('SELECTED', 'DONE')
SELECT c.campaign_id, c.name, c.apply_count / NULLIF(c.offer_count, 0) AS competition FROM campaign c JOIN brand b USING (brand_id) WHERE b.country_code = 'JP' AND c.status_code = '1209' ORDER BY competition DESC LIMIT 10
SELECT n.category_name, COUNT(*) AS brands FROM brand b JOIN category_name n ON n.category_id = b.category_id AND n.language = 'ko' WHERE b.country_code = 'JP' GROUP BY n.category_name ORDER BY brands DESC LIMIT 20
SELECT AVG(r.rating) AS mean FROM review r JOIN campaign c ON c.campaign_id = r.campaign_id JOIN brand b ON b.brand_id = c.brand_id WHERE b.country_code = 'JP'
SELECT SUM(c.offer_count) AS places FROM campaign c JOIN brand b ON b.brand_id = c.brand_id WHERE b.country_code = 'JP'
SELECT p.partner_id, p.name FROM partner p WHERE p.country_code = 'JP' AND p.partner_id NOT IN (SELECT b.partner_id FROM brand b)
SELECT YEAR(m.created_at) AS joined, COUNT(*) AS members FROM member m WHERE m.country_code = 'JP' GROUP BY joined ORDER BY joined
-- Of US.
SELECT COUNT(*) AS brands FROM brand WHERE country_code = 'US'
SELECT b.brand_id, b.brand_name, p.name AS partner FROM brand b JOIN partner p ON p.partner_id = b.partner_id WHERE b.country_code = 'US' ORDER BY b.brand_name LIMIT 50
SELECT COUNT(DISTINCT a.member_id) AS members FROM campaign_application a JOIN campaign c ON c.campaign_id = a.campaign_id JOIN brand b ON b.brand_id = c.brand_id WHERE b.country_code = 'US' AND a.status IN ('SELECTED', 'DONE')
SELECT c.campaign_id, c.name, c.apply_count / NULLIF(c.offer_count, 0) AS competition FROM campaign c JOIN brand b USING (brand_id) WHERE b.country_code = 'US' AND c.status_code = '1209' ORDER BY competition DESC LIMIT 10
SELECT n.category_name, COUNT(*) AS brands FROM brand b JOIN category_name n ON n.category_id = b.category_id AND n.language = 'ko' WHERE b.country_code = 'US' GROUP BY n.category_name ORDER BY brands DESC LIMIT 20
SELECT AVG(r.rating) AS mean FROM review r JOIN campaign c ON c.campaign_id = r.campaign_id JOIN brand b ON b.brand_id = c.brand_id WHERE b.country_code = 'US'
SELECT SUM(c.offer_count) AS places FROM campaign c JOIN brand b ON b.brand_id = c.brand_id WHERE b.country_code = 'US'
SELECT p.partner_id, p.name FROM partner p WHERE p.country_code = 'US' AND p.partner_id NOT IN (SELECT b.partner_id FROM brand b)
SELECT YEAR(m.created_at) AS joined, COUNT(*) AS members FROM member m WHERE m.country_code = 'US' GROUP BY joined ORDER BY joined
-- Of CN.
SELECT COUNT(*) AS brands FROM brand WHERE country_code = 'CN'
SELECT b.brand_id, b.brand_name, p.name AS partner FROM brand b JOIN partner p ON p.partner_id = b.partner_id WHERE b.country_code = 'CN' ORDER BY b.brand_name LIMIT 50
SELECT COUNT(DISTINCT a.member_id) AS members FROM campaign_application a JOIN campaign c ON c.campaign_id = a.campaign_id JOIN brand b ON b.brand_id = c.brand_id WHERE b.country_code = 'CN' AND a.status IN ('SELECTED', 'DONE')
SELECT c.campaign_id, c.name, c.apply_count / NULLIF(c.offer_count, 0) AS competition FROM campaign c JOIN brand b USING (brand_id) WHERE b.country_code = 'CN' AND c.status_code = '1209' ORDER BY competition DESC LIMIT 10
SELECT n.category_name, COUNT(*) AS brands FROM brand b JOIN category_name n ON n.category_id = b.category_id AND n.language = 'ko' WHERE b.country_code = 'CN' GROUP BY n.category_name ORDER BY brands DESC LIMIT 20
SELECT AVG(r.rating) AS mean FROM review r JOIN campaign c ON c.campaign_id = r.campaign_id JOIN brand b ON b.brand_id = c.brand_id WHERE b.country_code = 'CN'
SELECT SUM(c.offer_count) AS places FROM campaign c JOIN brand b ON b.brand_id = c.brand_id WHERE b.country_code = 'CN'
SELECT p.partner_id, p.name FROM partner p WHERE p.country_code = 'CN' AND p.partner_id NOT IN (SELECT b.partner_id FROM brand b)
SELECT YEAR(m.created_at) AS joined, COUNT(*) AS members FROM member m WHERE m.country_code = 'CN' GROUP BY joined ORDER BY joined
-- Campaigns in status 1206.
SELECT campaign_id, name, start_at, end_at FROM campaign WHERE status_code = '1206' ORDER BY start_at DESC LIMIT 20
SELECT brand_id, COUNT(*) AS n FROM campaign WHERE status_code = '1206' GROUP BY brand_id HAVING COUNT(*) >= 3 ORDER BY n DESC LIMIT 50
SELECT ROUND(AVG(TIMESTAMPDIFF(DAY, start_at, end_at)), 1) AS days FROM campaign WHERE status_code = '1206' AND end_at IS NOT NULL
SELECT SUM(status_code = '1206') / COUNT(*) AS share FROM campaign
SELECT p.partner_id, p.name FROM partner p WHERE EXISTS (SELECT 1 FROM campaign c WHERE c.partner_id = p.partner_id AND c.status_code = '1206') LIMIT 100
-- Campaigns in status 1208.
SELECT campaign_id, name, start_at, end_at FROM campaign WHERE status_code = '1208' ORDER BY start_at DESC LIMIT 20
SELECT brand_id, COUNT(*) AS n FROM campaign WHERE status_code = '1208' GROUP BY brand_id HAVING COUNT(*) >= 3 ORDER BY n DESC LIMIT 50
SELECT ROUND(AVG(TIMESTAMPDIFF(DAY, start_at, end_at)), 1) AS days FROM campaign WHERE status_code = '1208' AND end_at IS NOT NULL
SELECT SUM(status_code = '1208') / COUNT(*) AS share FROM campaign
SELECT p.partner_id, p.name FROM partner p WHERE EXISTS (SELECT 1 FROM campaign c WHERE c.partner_id = p.partner_id AND c.status_code = '1208') LIMIT 100
-- Campaigns in status 1209.
SELECT campaign_id, name, start_at, end_at FROM campaign WHERE status_code = '1209' ORDER BY start_at DESC LIMIT 20
SELECT brand_id, COUNT(*) AS n FROM campaign WHERE status_code = '1209' GROUP BY brand_id HAVING COUNT(*) >= 3 ORDER BY n DESC LIMIT 50
SELECT ROUND(AVG(TIMESTAMPDIFF(DAY, start_at, end_at)), 1) AS days FROM campaign WHERE status_code = '1209' AND end_at IS NOT NULL
SELECT SUM(status_code = '1209') / COUNT(*) AS share FROM campaign
SELECT p.partner_id, p.name FROM partner p WHERE EXISTS (SELECT 1 FROM campaign c WHERE c.partner_id = p.partner_id AND c.status_code = '1209') LIMIT 100
-- Campaigns in status 1210.
SELECT campaign_id, name, start_at, end_at FROM campaign WHERE status_code = '1210' ORDER BY start_at DESC LIMIT 20
SELECT brand_id, COUNT(*) AS n FROM campaign WHERE status_code = '1210' GROUP BY brand_id HAVING COUNT(*) >= 3 ORDER BY n DESC LIMIT 50
SELECT ROUND(AVG(TIMESTAMPDIFF(DAY, start_at, end_at)), 1) AS days FROM campaign WHERE status_code = '1210' AND end_at IS NOT NULL
SELECT SUM(status_code = '1210') / COUNT(*) AS share FROM campaign
SELECT p.partner_id, p.name FROM partner p WHERE EXISTS (SELECT 1 FROM campaign c WHERE c.partner_id = p.partner_id AND c.status_code = '1210') LIMIT 100
-- Campaigns in status 1211.
SELECT campaign_id, name, start_at, end_at FROM campaign WHERE status_code = '1211' ORDER BY start_at DESC LIMIT 20
SELECT brand_id, COUNT(*) AS n FROM campaign WHERE status_code = '1211' GROUP BY brand_id HAVING COUNT(*) >= 3 ORDER BY n DESC LIMIT 50
SELECT ROUND(AVG(TIMESTAMPDIFF(DAY, start_at, end_at)), 1) AS days FROM campaign WHERE status_code = '1211' AND end_at IS NOT NULL
SELECT SUM(status_code = '1211') / COUNT(*) AS share FROM campaign
SELECT p.partner_id, p.name FROM partner p WHERE EXISTS (SELECT 1 FROM campaign c WHERE c.partner_id = p.partner_id AND c.status_code = '1211') LIMIT 100
-- Categories.
SELECT c.category_id, n.category_name FROM category c LEFT JOIN category_name n ON n.category_id = c.category_id AND n.language = 'ko' WHERE c.parent_id = 0 ORDER BY c.display_order
WITH RECURSIVE t AS (SELECT category_id FROM category WHERE category_id = 12 UNION ALL SELECT c.category_id FROM category c JOIN t ON c.parent_id = t.category_id) SELECT COUNT(*) AS brands FROM brand WHERE category_id IN (SELECT category_id FROM t)
WITH RECURSIVE t AS (SELECT category_id, category_id AS top FROM category WHERE parent_id = 0 UNION ALL SELECT c.category_id, t.top FROM category c JOIN t ON c.parent_id = t.category_id) SELECT t.top, COUNT(b.brand_id) AS brands FROM t LEFT JOIN brand b ON b.category_id = t.category_id GROUP BY t.top ORDER BY brands DESC
SELECT n.language, COUNT(*) AS named FROM category_name n GROUP BY n.language
SELECT c.category_id FROM category c LEFT JOIN category_name n ON n.category_id = c.category_id WHERE n.category_id IS NULL
SELECT b.category_id, COALESCE(ko.category_name, en.category_name) AS category, COUNT(*) AS brands FROM brand b LEFT JOIN category_name ko ON ko.category_id = b.category_id AND ko.language = 'ko' LEFT JOIN category_name en ON en.category_id = b.category_id AND en.language = 'en' GROUP BY b.category_id, category ORDER BY brands DESC LIMIT 30
SELECT b.category_id, AVG(c.apply_count) AS applications FROM campaign c JOIN brand b ON b.brand_id = c.brand_id GROUP BY b.category_id ORDER BY applications DESC LIMIT 10
SELECT parent_id, COUNT(*) AS children FROM category GROUP BY parent_id ORDER BY children DESC LIMIT 10
SELECT c.category_id, (SELECT COUNT(*) FROM brand b WHERE b.category_id = c.category_id) AS brands FROM category c ORDER BY brands DESC LIMIT 10
-- Balances: the newest transaction of each brand.
SELECT d.brand_id, d.balance_liter FROM (SELECT brand_id, balance_liter, ROW_NUMBER() OVER (PARTITION BY brand_id ORDER BY created_at DESC, deposit_transaction_id DESC) AS n FROM deposit_transaction) d WHERE d.n = 1 ORDER BY d.balance_liter DESC LIMIT 20
SELECT SUM(d.balance_liter) AS liters FROM (SELECT balance_liter, ROW_NUMBER() OVER (PARTITION BY brand_id ORDER BY created_at DESC, deposit_transaction_id DESC) AS n FROM deposit_transaction) d WHERE d.n = 1
SELECT SUM(d.balance_liter) AS liters FROM deposit_transaction d WHERE d.deposit_transaction_id IN (SELECT MAX(e.deposit_transaction_id) FROM deposit_transaction e GROUP BY e.brand_id)
SELECT d.brand_id, d.balance_liter FROM deposit_transaction d LEFT JOIN deposit_transaction e ON e.brand_id = d.brand_id AND e.deposit_transaction_id > d.deposit_transaction_id WHERE e.deposit_transaction_id IS NULL
SELECT b.brand_id, b.brand_name, d.balance_liter FROM brand b JOIN deposit_transaction d ON d.deposit_transaction_id = (SELECT x.deposit_transaction_id FROM deposit_transaction x WHERE x.brand_id = b.brand_id ORDER BY x.created_at DESC, x.deposit_transaction_id DESC LIMIT 1) WHERE d.balance_liter < 100000 ORDER BY d.balance_liter
SELECT brand_id, SUM(amount_liter) AS balance FROM deposit_transaction GROUP BY brand_id HAVING balance < 0
SELECT brand_id, DATE_FORMAT(created_at, '%Y-%m') AS month, SUM(IF(kind = 'CHARGE', amount_liter, 0)) AS charged, SUM(IF(kind = 'SPEND', -amount_liter, 0)) AS spent FROM deposit_transaction GROUP BY brand_id, month ORDER BY brand_id, month LIMIT 200
SELECT brand_id, created_at, amount_liter, SUM(amount_liter) OVER (PARTITION BY brand_id ORDER BY created_at, deposit_transaction_id) AS running FROM deposit_transaction WHERE brand_id = 17
SELECT MIN(balance_liter) AS least, MAX(balance_liter) AS most FROM deposit_transaction WHERE brand_id = 17
WITH l AS (SELECT brand_id, balance_liter, ROW_NUMBER() OVER (PARTITION BY brand_id ORDER BY created_at DESC, deposit_transaction_id DESC) AS n FROM deposit_transaction WHERE created_at < '2026-07-01'), e AS (SELECT brand_id, balance_liter, ROW_NUMBER() OVER (PARTITION BY brand_id ORDER BY created_at DESC, deposit_transaction_id DESC) AS n FROM deposit_transaction WHERE created_at < '2026-04-01') SELECT l.brand_id, l.balance_liter - e.balance_liter AS change_liter FROM l JOIN e ON e.brand_id = l.brand_id AND e.n = 1 WHERE l.n = 1 ORDER BY change_liter LIMIT 10
-- How campaigns did.
SELECT c.campaign_id, c.offer_count, COUNT(a.campaign_application_id) AS selected, COUNT(a.campaign_application_id) / NULLIF(c.offer_count, 0) AS fill_rate FROM campaign c LEFT JOIN campaign_application a ON a.campaign_id = c.campaign_id AND a.status IN ('SELECTED', 'DONE') WHERE c.status_code = '1209' GROUP BY c.campaign_id, c.offer_count ORDER BY fill_rate LIMIT 20
SELECT AVG(t.selected / NULLIF(t.offer_count, 0)) AS mean_fill FROM (SELECT c.campaign_id, c.offer_count, COUNT(a.campaign_application_id) AS selected FROM campaign c LEFT JOIN campaign_application a ON a.campaign_id = c.campaign_id AND a.status IN ('SELECTED', 'DONE') GROUP BY c.campaign_id, c.offer_count) t
SELECT c.brand_id, SUM(c.offer_count) AS places, SUM(s.selected) AS selected FROM campaign c LEFT JOIN (SELECT campaign_id, COUNT(*) AS selected FROM campaign_application WHERE status IN ('SELECTED', 'DONE') GROUP BY campaign_id) s ON s.campaign_id = c.campaign_id GROUP BY c.brand_id ORDER BY places DESC LIMIT 20
SELECT c.campaign_id, SUM(a.status = 'DONE') AS done, COUNT(*) AS applications FROM campaign c JOIN campaign_application a ON a.campaign_id = c.campaign_id GROUP BY c.campaign_id ORDER BY done DESC LIMIT 20
SELECT SUM(apply_count) / NULLIF(SUM(view_count), 0) AS density FROM campaign WHERE status_code = '1209'
SELECT campaign_id, apply_count / NULLIF(view_count, 0) AS density FROM campaign WHERE view_count >= 1000 ORDER BY density DESC LIMIT 10
SELECT CASE WHEN offer_count < 10 THEN 'under 10' WHEN offer_count < 50 THEN '10 to 49' ELSE '50 or more' END AS size, COUNT(*) AS n, AVG(apply_count) AS applications FROM campaign GROUP BY size
SELECT c.campaign_id, c.name FROM campaign c WHERE c.offer_count > 0 AND NOT EXISTS (SELECT 1 FROM campaign_application a WHERE a.campaign_id = c.campaign_id) LIMIT 50
SELECT c.campaign_id, COUNT(r.review_id) AS reviews, AVG(r.rating) AS mean FROM campaign c LEFT JOIN review r ON r.campaign_id = c.campaign_id GROUP BY c.campaign_id HAVING COUNT(r.review_id) >= 5 ORDER BY mean DESC LIMIT 20
SELECT b.brand_id, b.brand_name, AVG(r.rating) AS mean, COUNT(*) AS reviews FROM review r JOIN campaign c ON c.campaign_id = r.campaign_id JOIN brand b ON b.brand_id = c.brand_id GROUP BY b.brand_id, b.brand_name HAVING COUNT(*) >= 10 ORDER BY mean LIMIT 10
SELECT campaign_id, DATEDIFF(end_at, start_at) + 1 AS days FROM campaign WHERE end_at IS NOT NULL ORDER BY days DESC LIMIT 10
SELECT AVG(TIMESTAMPDIFF(HOUR, c.start_at, a.applied_at)) AS hours FROM campaign_application a JOIN campaign c ON c.campaign_id = a.campaign_id WHERE a.applied_at >= c.start_at
SELECT c.campaign_id FROM campaign c WHERE c.apply_count > (SELECT AVG(x.apply_count) FROM campaign x) LIMIT 20
SELECT campaign_id, brand_id, start_at FROM (SELECT campaign_id, brand_id, start_at, ROW_NUMBER() OVER (PARTITION BY brand_id ORDER BY start_at DESC, campaign_id DESC) AS n FROM campaign) t WHERE n <= 3 ORDER BY brand_id, start_at DESC
SELECT brand_id, start_at, DATEDIFF(start_at, LAG(start_at) OVER (PARTITION BY brand_id ORDER BY start_at)) AS days_since FROM campaign ORDER BY brand_id, start_at LIMIT 100
SELECT NTILE(4) OVER (ORDER BY apply_count) AS quartile, campaign_id, apply_count FROM campaign ORDER BY apply_count DESC LIMIT 40
SELECT month, campaigns, campaigns - LAG(campaigns) OVER (ORDER BY month) AS more FROM (SELECT DATE_FORMAT(start_at, '%Y-%m') AS month, COUNT(*) AS campaigns FROM campaign GROUP BY month) m ORDER BY month
SELECT STDDEV_SAMP(apply_count) AS spread, AVG(apply_count) AS mean FROM campaign WHERE status_code = '1209'
SELECT AVG(apply_count) AS median FROM (SELECT apply_count, ROW_NUMBER() OVER (ORDER BY apply_count) AS n, COUNT(*) OVER () AS c FROM campaign) t WHERE n IN (FLOOR((c + 1) / 2), CEIL((c + 1) / 2))
-- Whom to write to.
SELECT a.partner_admin_id, a.name, a.email, p.name AS partner FROM partner_admin a JOIN partner p ON p.partner_id = a.partner_id WHERE a.email_verified = 1 AND a.account_status = 'READY' LIMIT 50
SELECT p.partner_id, p.name FROM partner p LEFT JOIN partner_admin a ON a.partner_id = p.partner_id AND a.email_verified = 1 AND a.account_status = 'READY' WHERE a.partner_admin_id IS NULL LIMIT 100
SELECT p.partner_id, p.name, COUNT(a.partner_admin_id) AS contacts FROM partner p LEFT JOIN partner_admin a ON a.partner_id = p.partner_id AND a.email_verified = 1 GROUP BY p.partner_id, p.name ORDER BY contacts DESC LIMIT 20
SELECT COUNT(*) AS n FROM partner_admin WHERE last_login_at IS NULL
SELECT SUBSTRING_INDEX(a.email, '@', -1) AS host, COUNT(*) AS n FROM partner_admin a GROUP BY host ORDER BY n DESC LIMIT 20
SELECT a.email, COUNT(*) AS n FROM partner_admin a GROUP BY a.email HAVING n > 1
SELECT position, COUNT(*) AS n FROM partner_admin WHERE position IS NOT NULL GROUP BY position ORDER BY n DESC LIMIT 20
SELECT p.partner_id FROM partner p WHERE p.business_no IS NULL OR p.business_no = ''
SELECT b.brand_id, b.brand_name FROM brand b WHERE b.homepage_url IS NULL AND b.president <> '' LIMIT 50
SELECT b.brand_id, b.brand_name FROM brand b WHERE b.brand_name LIKE '%라온%' OR b.president LIKE '김%' LIMIT 50
SELECT b.brand_id, CHAR_LENGTH(b.brand_name) AS characters FROM brand b ORDER BY characters DESC LIMIT 10
SELECT p.partner_id, GROUP_CONCAT(b.brand_name ORDER BY b.brand_name SEPARATOR ', ') AS brands FROM partner p JOIN brand b ON b.partner_id = p.partner_id GROUP BY p.partner_id LIMIT 50
SELECT p.partner_id, p.name, l.last_start FROM partner p JOIN (SELECT partner_id, MAX(start_at) AS last_start FROM campaign WHERE status_code <> '1211' GROUP BY partner_id) l ON l.partner_id = p.partner_id WHERE l.last_start < '2026-01-01' ORDER BY l.last_start LIMIT 100
SELECT a.name, a.position, a.last_login_at FROM partner_admin a WHERE a.partner_id = 42 ORDER BY a.last_login_at DESC
SELECT b.partner_id, COUNT(*) AS brands FROM brand b GROUP BY b.partner_id HAVING COUNT(*) > 1 ORDER BY brands DESC LIMIT 20
SELECT p.name FROM partner p WHERE p.name REGEXP '주식회사|\\(주\\)' LIMIT 20
SELECT DATEDIFF(NOW(), a.last_login_at) AS days, a.partner_admin_id FROM partner_admin a WHERE a.last_login_at IS NOT NULL ORDER BY days DESC LIMIT 20
-- Members and their applications, for analytics.
SELECT country_code, COUNT(*) AS members FROM member GROUP BY country_code ORDER BY members DESC
SELECT t.applications, COUNT(*) AS members FROM (SELECT member_id, COUNT(*) AS applications FROM campaign_application GROUP BY member_id) t GROUP BY t.applications ORDER BY t.applications
SELECT COUNT(DISTINCT a.member_id) AS active FROM campaign_application a WHERE a.applied_at >= '2026-01-01'
SELECT m.member_id, m.nickname, COUNT(*) AS reviews FROM member m JOIN review r ON r.member_id = m.member_id GROUP BY m.member_id, m.nickname ORDER BY reviews DESC LIMIT 20
SELECT COUNT(*) AS never_applied FROM member m WHERE NOT EXISTS (SELECT 1 FROM campaign_application a WHERE a.member_id = m.member_id)
SELECT SUBSTRING_INDEX(m.email, '@', -1) AS host, COUNT(*) AS members FROM member m GROUP BY host ORDER BY members DESC LIMIT 10
SELECT a.status, COUNT(*) AS n FROM campaign_application a JOIN member m ON m.member_id = a.member_id WHERE m.country_code = 'KR' GROUP BY a.status
SELECT SUM(a.status IN ('SELECTED', 'DONE')) / COUNT(*) AS chance FROM campaign_application a
SELECT COUNT(*) AS silent FROM campaign_application a LEFT JOIN review r ON r.campaign_id = a.campaign_id AND r.member_id = a.member_id WHERE a.status = 'DONE' AND r.review_id IS NULL
SELECT DATE_FORMAT(m.created_at, '%Y-%m') AS joined, COUNT(DISTINCT a.member_id) / COUNT(DISTINCT m.member_id) AS share FROM member m LEFT JOIN campaign_application a ON a.member_id = m.member_id GROUP BY joined ORDER BY joined
SELECT AVG(CHAR_LENGTH(content)) AS characters FROM review WHERE content IS NOT NULL AND content <> ''
SELECT rating, SUM(content LIKE '%추천%') AS recommends FROM review GROUP BY rating ORDER BY rating
SELECT m.member_id FROM member m WHERE m.member_id IN (SELECT r.member_id FROM review r WHERE r.rating <= 2) LIMIT 20
SELECT ROUND(AVG(days), 1) AS days FROM (SELECT DATEDIFF(r.created_at, a.applied_at) AS days FROM review r JOIN campaign_application a ON a.campaign_id = r.campaign_id AND a.member_id = r.member_id) t
-- Transactions of kind CHARGE.
SELECT COUNT(*) AS n, SUM(amount_liter) AS liters, MIN(created_at) AS first_one, MAX(created_at) AS last_one FROM deposit_transaction WHERE kind = 'CHARGE'
SELECT b.brand_id, b.brand_name FROM brand b WHERE b.brand_id NOT IN (SELECT d.brand_id FROM deposit_transaction d WHERE d.kind = 'CHARGE') LIMIT 50
SELECT brand_id, TIMESTAMPDIFF(DAY, MAX(created_at), NOW()) AS days FROM deposit_transaction WHERE kind = 'CHARGE' GROUP BY brand_id ORDER BY days DESC LIMIT 20
-- Transactions of kind SPEND.
SELECT COUNT(*) AS n, SUM(amount_liter) AS liters, MIN(created_at) AS first_one, MAX(created_at) AS last_one FROM deposit_transaction WHERE kind = 'SPEND'
SELECT b.brand_id, b.brand_name FROM brand b WHERE b.brand_id NOT IN (SELECT d.brand_id FROM deposit_transaction d WHERE d.kind = 'SPEND') LIMIT 50
SELECT brand_id, TIMESTAMPDIFF(DAY, MAX(created_at), NOW()) AS days FROM deposit_transaction WHERE kind = 'SPEND' GROUP BY brand_id ORDER BY days DESC LIMIT 20
-- Transactions of kind REFUND.
SELECT COUNT(*) AS n, SUM(amount_liter) AS liters, MIN(created_at) AS first_one, MAX(created_at) AS last_one FROM deposit_transaction WHERE kind = 'REFUND'
SELECT b.brand_id, b.brand_name FROM brand b WHERE b.brand_id NOT IN (SELECT d.brand_id FROM deposit_transaction d WHERE d.kind = 'REFUND') LIMIT 50
SELECT brand_id, TIMESTAMPDIFF(DAY, MAX(created_at), NOW()) AS days FROM deposit_transaction WHERE kind = 'REFUND' GROUP BY brand_id ORDER BY days DESC LIMIT 20
-- Transactions of kind ADJUST.
SELECT COUNT(*) AS n, SUM(amount_liter) AS liters, MIN(created_at) AS first_one, MAX(created_at) AS last_one FROM deposit_transaction WHERE kind = 'ADJUST'
SELECT b.brand_id, b.brand_name FROM brand b WHERE b.brand_id NOT IN (SELECT d.brand_id FROM deposit_transaction d WHERE d.kind = 'ADJUST') LIMIT 50
SELECT brand_id, TIMESTAMPDIFF(DAY, MAX(created_at), NOW()) AS days FROM deposit_transaction WHERE kind = 'ADJUST' GROUP BY brand_id ORDER BY days DESC LIMIT 20
-- Growth, cohorts and ranks.
SELECT YEAR(created_at) AS y, QUARTER(created_at) AS q, COUNT(*) AS brands FROM brand GROUP BY y, q ORDER BY y, q
SELECT d.day, SUM(d.n) OVER (ORDER BY d.day) AS brands FROM (SELECT DATE(created_at) AS day, COUNT(*) AS n FROM brand GROUP BY day) d ORDER BY d.day
SELECT DATE_FORMAT(b.created_at, '%Y-%m') AS cohort, COUNT(DISTINCT b.brand_id) AS brands, COUNT(DISTINCT c.brand_id) AS with_campaign FROM brand b LEFT JOIN campaign c ON c.brand_id = b.brand_id AND c.start_at < b.created_at + INTERVAL 90 DAY GROUP BY cohort ORDER BY cohort
SELECT b.country_code, b.brand_id, RANK() OVER (PARTITION BY b.country_code ORDER BY t.places DESC) AS place FROM brand b JOIN (SELECT brand_id, SUM(offer_count) AS places FROM campaign GROUP BY brand_id) t ON t.brand_id = b.brand_id ORDER BY b.country_code, place LIMIT 100
WITH m AS (SELECT brand_id, DATE_FORMAT(start_at, '%Y-%m') AS month, COUNT(*) AS n FROM campaign GROUP BY brand_id, month) SELECT month, AVG(n) AS mean FROM m GROUP BY month ORDER BY month
WITH RECURSIVE months AS (SELECT DATE('2026-01-01') AS m UNION ALL SELECT m + INTERVAL 1 MONTH FROM months WHERE m < '2026-06-01') SELECT months.m, COUNT(c.campaign_id) AS campaigns FROM months LEFT JOIN campaign c ON c.start_at >= months.m AND c.start_at < months.m + INTERVAL 1 MONTH GROUP BY months.m ORDER BY months.m
SELECT COUNT(*) AS loyal FROM (SELECT brand_id FROM campaign GROUP BY brand_id HAVING COUNT(DISTINCT YEAR(start_at)) >= 3) t
SELECT MIN(created_at) AS first_one, MAX(created_at) AS last_one, DATEDIFF(MAX(created_at), MIN(created_at)) AS days FROM campaign
SELECT brand_id, FIRST_VALUE(name) OVER (PARTITION BY brand_id ORDER BY start_at DESC) AS newest FROM campaign LIMIT 50
SELECT COUNT(IF(apply_count = 0, 1, NULL)) AS without_applications, COUNT(CASE WHEN apply_count >= offer_count THEN 1 END) AS full_ones FROM campaign
SELECT CONVERT_TZ(start_at, '+00:00', '+09:00') AS start_in_seoul, name FROM campaign ORDER BY start_at DESC LIMIT 5
SELECT a.brand_id, a.n AS this_half, b.n AS last_half FROM (SELECT brand_id, COUNT(*) AS n FROM campaign WHERE start_at >= '2026-01-01' AND start_at < '2026-07-01' GROUP BY brand_id) a JOIN (SELECT brand_id, COUNT(*) AS n FROM campaign WHERE start_at >= '2025-07-01' AND start_at < '2026-01-01' GROUP BY brand_id) b ON b.brand_id = a.brand_id ORDER BY this_half DESC LIMIT 20
SELECT 'brands' AS what, COUNT(*) AS n FROM brand UNION ALL SELECT 'partners', COUNT(*) FROM partner UNION ALL SELECT 'campaigns', COUNT(*) FROM campaign
SELECT b.brand_id, (SELECT COUNT(*) FROM campaign c WHERE c.brand_id = b.brand_id) AS campaigns, (SELECT SUM(d.amount_liter) FROM deposit_transaction d WHERE d.brand_id = b.brand_id) AS liters FROM brand b ORDER BY campaigns DESC LIMIT 20
SELECT UNIX_TIMESTAMP(MAX(created_at)) - UNIX_TIMESTAMP(MIN(created_at)) AS seconds FROM brand
SELECT FROM_UNIXTIME(AVG(UNIX_TIMESTAMP(created_at))) AS mean_day FROM brand
SELECT ROUND(PERCENT_RANK() OVER (ORDER BY view_count), 3) AS share, campaign_id FROM campaign ORDER BY view_count DESC LIMIT 10
SELECT c.campaign_id, b.brand_name, p.name FROM campaign c JOIN brand b ON b.brand_id = c.brand_id JOIN partner p ON p.partner_id = b.partner_id WHERE c.partner_id <> b.partner_id LIMIT 20
SELECT o.campaign_id, o.places FROM (SELECT campaign_id, offer_count AS places FROM campaign WHERE offer_count BETWEEN 10 AND 20) o ORDER BY o.places LIMIT 10
SELECT COALESCE(country_code, 'all') AS country, COUNT(*) AS brands FROM brand GROUP BY country_code WITH ROLLUP
-- Nine hours that are a length of time, and not what Korean time is ahead of UTC.
SELECT COUNT(*) FROM campaign WHERE created_at >= '2026-04-01' AND created_at < '2026-04-01' + INTERVAL 9 HOUR
SELECT COUNT(*) FROM campaign WHERE created_at >= '2026-03-31 15:00:00' AND created_at < '2026-03-31 15:00:00' + INTERVAL 9 HOUR
SELECT COUNT(*) FROM campaign WHERE created_at BETWEEN '2026-04-01 02:00:00' AND '2026-04-01 02:00:00' + INTERVAL 9 HOUR
SELECT COUNT(*) FROM campaign WHERE created_at >= '2026-04-01' + INTERVAL 9 HOUR AND created_at < '2026-04-01' + INTERVAL 15 HOUR
SELECT COUNT(*) FROM campaign WHERE created_at >= CONVERT_TZ('2026-04-01 00:00:00', '+00:00', '+09:00') - INTERVAL 18 HOUR
SELECT COUNT(*) FROM campaign WHERE created_at >= DATE_ADD('2026-04-01', INTERVAL 9 HOUR) - INTERVAL 18 HOUR
SELECT COUNT(*) FROM campaign WHERE created_at >= CONVERT_TZ('2026-04-01 00:00:00', '-09:00', '+00:00')
-- Moments some days before another.
SELECT COUNT(*) FROM campaign WHERE created_at <= '2026-05-01' - INTERVAL 30 DAY
SELECT COUNT(*) FROM campaign WHERE created_at <= DATE_SUB('2026-05-01', INTERVAL 90 DAY)
SELECT COUNT(*) FROM campaign WHERE created_at BETWEEN '2026-05-01' - INTERVAL 14 DAY AND '2026-05-01' - INTERVAL 7 DAY
-- Places that are of other columns, or of all branches.
SELECT *, amount_liter FROM deposit_transaction WHERE kind = 'SPEND' ORDER BY 2 DESC
SELECT d.*, d.amount_liter AS one FROM deposit_transaction d WHERE kind = 'SPEND' ORDER BY 2 DESC
SELECT brand_id, SUM(amount_liter) FROM deposit_transaction WHERE kind = 'CHARGE' GROUP BY 1 UNION ALL SELECT brand_id, SUM(amount_liter) FROM deposit_transaction WHERE kind = 'SPEND' GROUP BY 1 ORDER BY 2 DESC
