package tool

// Warning says that a call was answered and may have been meant otherwise. Data has them as warnings, which is absent when there
// are none: `json:"warnings,omitempty"`.
type Warning struct {
	// Rule names what was noticed, such as statusCodes or sql.text_date.
	Rule string `json:"rule" jsonschema:"Names what was noticed, such as sql.text_date"`
	// Message says what was noticed and what to send instead.
	Message string `json:"message" jsonschema:"What was noticed, and what to send instead"`
}

// SchemaTitle implements schema.Titled.
func (Warning) SchemaTitle() string { return "Warning" }
