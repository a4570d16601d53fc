package main

import "strings"

// A category belongs to one of seven themes, by its top level; theme indexes the
// word lists (products, brand nouns).
type category struct {
	id, parent int64
	order      int64
	theme      int
	names      []categoryName
}

type categoryName struct{ language, name string }

// languages are the column order of categoryText. "in" is the old code of
// Indonesian, which the source still uses.
var languages = []string{"ko", "en", "ja", "cn", "vi", "in"}

// categoryText is the tree, one category a line: id, parent, display order, then its
// name in each language, "-" where the source has none. Ids say nothing about the
// place in the tree, some display orders are equal, and names are missing so that
// every step of the fallback (language, ko, en, nothing) is taken.
const categoryText = `
12|0|1|뷰티|Beauty|ビューティー|美妆|Làm đẹp|Kecantikan
13|0|2|패션|Fashion|ファッション|时尚|Thời trang|Mode
14|0|3|라이프|Life|ライフ|生活|Đời sống|Gaya Hidup
33|0|4|푸드|Food|フード|美食|Thực phẩm|Makanan
34|0|5|베이비|Baby|ベビー|母婴|Mẹ & Bé|Bayi
35|0|6|취미|Hobby|-|爱好|Sở thích|Hobi
6666|0|7|반려동물|Pets|ペット|宠物|Thú cưng|-
101|12|1|스킨케어|Skincare|スキンケア|护肤|Chăm sóc da|Perawatan Kulit
102|12|2|메이크업|Makeup|メイクアップ|彩妆|Trang điểm|Riasan
103|12|3|헤어·바디|Hair & Body|ヘア＆ボディ|洗护|Tóc & Cơ thể|Rambut & Tubuh
111|13|1|여성의류|Women's Clothing|レディース|女装|Thời trang nữ|Pakaian Wanita
112|13|2|남성의류|Men's Clothing|メンズ|男装|Thời trang nam|Pakaian Pria
113|13|3|잡화|Accessories|雑貨|配饰|Phụ kiện|Aksesori
121|14|1|주방|Kitchen|キッチン|厨房|Nhà bếp|Dapur
122|14|2|인테리어|Interior|-|家居|Nội thất|Interior
123|14|2|생활가전|Appliances|生活家電|家电|Gia dụng|Elektronik Rumah
131|33|1|간편식|Ready Meals|レトルト食品|方便食品|Đồ ăn liền|Makanan Siap Saji
132|33|2|음료|Drinks|飲料|饮料|Đồ uống|Minuman
133|33|3|건강식품|Health Food|健康食品|保健食品|Thực phẩm chức năng|Makanan Sehat
141|34|1|기저귀·물티슈|Diapers & Wipes|おむつ|纸尿裤|Tã & Khăn ướt|Popok & Tisu
142|34|2|이유식|Baby Food|離乳食|辅食|Ăn dặm|-
143|34|3|유아완구|Baby Toys|-|婴儿玩具|Đồ chơi trẻ em|Mainan Bayi
151|35|1|캠핑|Camping|キャンプ|露营|Cắm trại|Berkemah
152|35|2|공예|Crafts|ハンドメイド|手工|Thủ công|Kerajinan
153|35|3|게임|Games|ゲーム|游戏|Trò chơi|Permainan
161|6666|1|강아지|Dogs|犬|狗狗|Chó|Anjing
162|6666|2|고양이|Cats|猫|猫咪|Mèo|Kucing
163|6666|3|소동물|Small Pets|-|-|Thú nhỏ|-
2001|101|1|앰플·세럼|Ampoules & Serums|美容液|精华|Tinh chất|Serum
2002|101|2|선케어|Sun Care|日焼け止め|防晒|Chống nắng|Tabir Surya
2003|101|2|마스크팩|Sheet Masks|シートマスク|面膜|Mặt nạ|Masker Wajah
2004|102|1|립메이크업|Lip Makeup|リップ|唇妆|Trang điểm môi|Riasan Bibir
2005|103|1|샴푸|Shampoo|シャンプー|洗发水|Dầu gội|Sampo
2011|111|1|원피스|Dresses|ワンピース|连衣裙|Váy liền|Gaun
2012|111|2|니트|Knitwear|ニット|针织衫|Đồ len|Rajut
2013|112|1|셔츠|Shirts|シャツ|衬衫|Áo sơ mi|Kemeja
2014|113|1|가방|Bags|バッグ|箱包|Túi xách|Tas
2015|113|2|주얼리|Jewelry|-|首饰|Trang sức|Perhiasan
2021|121|1|냄비·프라이팬|Pots & Pans|鍋・フライパン|锅具|Nồi & Chảo|Panci & Wajan
2022|121|2|-|Tableware|食器|餐具|Bát đĩa|Peralatan Makan
2023|122|1|조명|Lighting|照明|灯具|Đèn|Lampu
2024|122|2|침구|Bedding|寝具|床品|Chăn ga|Seprai
2025|123|1|청소기|Vacuum Cleaners|掃除機|吸尘器|Máy hút bụi|Penyedot Debu
2031|131|1|밀키트|Meal Kits|ミールキット|净菜|Bộ nguyên liệu|Paket Masak
2032|131|2|라면|Instant Noodles|ラーメン|方便面|Mì gói|Mi Instan
2033|132|1|커피|Coffee|コーヒー|咖啡|Cà phê|Kopi
2034|132|2|-|Traditional Tea|-|茶|Trà|Teh
2035|133|1|홍삼|Red Ginseng|高麗人参|红参|Hồng sâm|Ginseng Merah
2041|141|1|물티슈|Wet Wipes|おしりふき|湿巾|Khăn ướt|Tisu Basah
2042|141|2|팬티기저귀|Pull-up Diapers|パンツおむつ|拉拉裤|Tã quần|Popok Celana
2043|142|1|쌀과자|Rice Snacks|-|米饼|Bánh gạo|Biskuit Beras
2044|143|1|블록|Building Blocks|ブロック|积木|Xếp hình|Balok
2045|143|2|-|-|-|-|Đồ chơi gỗ|-
2051|151|1|텐트|Tents|テント|帐篷|Lều|Tenda
2052|151|2|캠핑의자|Camping Chairs|チェア|露营椅|Ghế xếp|Kursi Lipat
2053|152|1|뜨개질|Knitting|編み物|编织|Đan len|Merajut
2054|152|2|도예|-|陶芸|陶艺|Gốm|Keramik
2055|153|1|보드게임|Board Games|ボードゲーム|桌游|Board game|Permainan Papan
2061|161|1|강아지 사료|Dog Food|ドッグフード|狗粮|Thức ăn cho chó|Makanan Anjing
2062|161|2|산책용품|Walking Gear|お散歩グッズ|牵引用品|Đồ dắt chó|Perlengkapan Jalan
2063|162|1|고양이 모래|Cat Litter|猫砂|猫砂|Cát vệ sinh|Pasir Kucing
2064|162|2|캣타워|Cat Trees|キャットタワー|猫爬架|-|Pohon Kucing
2065|163|1|햄스터|Hamsters|-|-|Chuột hamster|-
`

// readCategories parses categoryText; parents stand before their children.
func readCategories() []category {
	var list []category
	theme := map[int64]int{}
	for line := range strings.SplitSeq(strings.TrimSpace(categoryText), "\n") {
		f := strings.Split(line, "|")
		c := category{id: number(f[0]), parent: number(f[1]), order: number(f[2])}
		if c.parent == 0 {
			c.theme = len(theme)
		} else {
			c.theme = theme[c.parent]
		}
		theme[c.id] = c.theme
		for i, name := range f[3:] {
			if name != "-" {
				c.names = append(c.names, categoryName{languages[i], name})
			}
		}
		list = append(list, c)
	}
	return list
}

func number(s string) int64 {
	var n int64
	for _, c := range s {
		n = n*10 + int64(c-'0')
	}
	return n
}
