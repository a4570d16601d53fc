package text_test

import (
	"testing"

	"hub.internal/pkg/text"
)

func TestLanguage(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "1,200,000": "", "Kim Min-su": "", "Dear 김민수, we would like to invite you to the spring campaign": "", "王小明": "",
		"김민수": "ko", "김민수 (Minsu Kim)": "ko", "봄 캠페인 안내 https://shop.example/a": "ko", "山田さくら": "ja", "カメラ X100": "ja", "田中": "",
	} {
		if got := text.Language(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
