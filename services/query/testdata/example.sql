-- The source that the examples of the tools are executed on.
INSERT INTO category VALUES (12, 0, 1), (13, 0, 2), (121, 12, 1), (122, 12, 2);
INSERT INTO category_name VALUES (12, 'ko', '뷰티'), (12, 'en', 'Beauty'), (13, 'ko', '패션'), (13, 'en', 'Fashion'), (121, 'ko', '스킨케어'), (121, 'en', 'Skin care'), (122, 'ko', '메이크업');
INSERT INTO partner VALUES
  (501, '한빛코스메틱 주식회사', '123-45-67890', 'KR', '2021-03-02 09:00:00'),
  (502, 'Sakura Foods 株式会社', NULL, 'JP', '2022-07-15 10:30:00');
INSERT INTO partner_admin VALUES
  (9001, 501, '김민지', 'minji.kim@hanbit.example', 1, 'READY', '마케팅 팀장', '2026-01-20 08:15:00', '2021-03-02 09:00:00'),
  (9002, 501, '이준호', 'junho.lee@hanbit.example', 1, 'READY', NULL, NULL, '2023-05-01 09:00:00'),
  (9003, 501, '박서연', 'seoyeon.park@hanbit.example', 1, 'LEAVE', '대리', '2024-02-11 17:40:00', '2022-01-10 09:00:00'),
  (9004, 502, '佐藤 花子', 'unverified@sakura.example', 0, 'READY', NULL, '2026-01-25 12:00:00', '2022-07-15 10:30:00');
INSERT INTO brand VALUES
  (3001, 501, '한빛 글로우', '김하늘', 121, 'KR', 'https://glow.hanbit.example', '2021-03-05 09:00:00'),
  (3002, 501, '한빛 컬러', '김하늘', 122, 'KR', NULL, '2022-11-01 09:00:00'),
  (3003, 502, 'Sakura Bento', '佐藤 太郎', 13, 'JP', NULL, '2022-07-20 09:00:00');
INSERT INTO campaign VALUES
  (70001, 501, 3001, '수분크림 체험단', '1209', '2025-10-01 00:00:00', '2025-10-31 23:59:59', 20, 184, 5230, '2025-09-20 10:00:00'),
  (70002, 501, 3001, '새해 100% 수분 세럼', '1206', '2026-01-15 00:00:00', NULL, 30, 96, 2104, '2026-01-05 10:00:00'),
  (70003, 502, 3003, '桜弁当レビュー', '1210', '2025-12-01 00:00:00', '2025-12-10 00:00:00', 0, 0, 0, '2025-11-20 10:00:00');
INSERT INTO deposit_transaction VALUES
  (40001, 3001, 'CHARGE', 500000.00, 500000.00, '2025-09-01 00:00:00'),
  (40002, 3001, 'SPEND', -120000.50, 379999.50, '2025-10-01 00:00:00');
INSERT INTO member VALUES (600001, '리뷰어하나', 'reviewer1@member.example', 'KR', NULL, '2024-01-01 00:00:00'), (600002, '리뷰어둘', 'reviewer2@member.example', 'KR', NULL, '2024-02-01 00:00:00');
INSERT INTO campaign_application VALUES
  (800001, 70001, 600001, 'DONE', '2025-10-02 12:00:00'),
  (800002, 70001, 600002, 'SELECTED', '2025-10-03 12:00:00'),
  (800003, 70002, 600002, 'APPLIED', '2026-01-16 12:00:00');
INSERT INTO review VALUES (900001, 70001, 600001, 5, '촉촉해요', '2025-11-05 20:00:00');
