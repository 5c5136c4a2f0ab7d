package chattemplate

import (
	"fmt"
	"strings"
	"time"
)

// strftime formats a time as Python's datetime.strftime does with the C library
// of Linux and the locale C. The time counts as naive: %z and %Z are empty.
func (r *render) strftime(t time.Time, format string) string {
	var b strings.Builder
	r.step(len(format) / 4)
	for i := 0; i < len(format) && b.Len() <= maxTextBytes; i++ {
		if format[i] != '%' || i+1 >= len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		flag := byte(0)
		if strings.IndexByte("-_0^#", format[i]) >= 0 && i+1 < len(format) {
			flag = format[i]
			i++
		}
		text, ok := timeField(t, format[i], flag)
		switch {
		case !ok:
			b.WriteByte('%')
			if flag != 0 {
				b.WriteByte(flag)
			}
			b.WriteByte(format[i])
		case flag == '^':
			b.WriteString(strings.ToUpper(text))
		default:
			b.WriteString(text)
		}
	}
	r.text(b.Len())
	return b.String()
}

// timeLayouts are the fields that are words, or several fields.
var timeLayouts = map[byte]string{
	'Y': "2006", 'B': "January", 'b': "Jan", 'h': "Jan", 'A': "Monday", 'a': "Mon", 'p': "PM", 'P': "pm",
	'F': "2006-01-02", 'T': "15:04:05", 'X': "15:04:05", 'R': "15:04", 'D': "01/02/06", 'x': "01/02/06",
	'c': "Mon Jan _2 15:04:05 2006", 'r': "03:04:05 PM",
}

var timeTexts = map[byte]string{'n': "\n", 't': "\t", '%': "%", 'z': "", 'Z': ""}

func timeField(t time.Time, field, flag byte) (string, bool) {
	if layout, ok := timeLayouts[field]; ok {
		return t.Format(layout), true
	}
	if text, ok := timeTexts[field]; ok {
		return text, true
	}
	n, width, blank := 0, 2, false
	isoYear, isoWeek := t.ISOWeek()
	weekday, yearDay := int(t.Weekday()), t.YearDay()-1
	switch field {
	case 'y':
		n = t.Year() % 100
	case 'C':
		n = t.Year() / 100
	case 'm':
		n = int(t.Month())
	case 'd':
		n = t.Day()
	case 'e':
		n, blank = t.Day(), true
	case 'H':
		n = t.Hour()
	case 'k':
		n, blank = t.Hour(), true
	case 'I':
		n = (t.Hour()+11)%12 + 1
	case 'l':
		n, blank = (t.Hour()+11)%12+1, true
	case 'M':
		n = t.Minute()
	case 'S':
		n = t.Second()
	case 'j':
		n, width = yearDay+1, 3
	case 'f':
		return fmt.Sprintf("%06d", t.Nanosecond()/1000), true
	case 'u':
		n, width = (weekday+6)%7+1, 1
	case 'w':
		n, width = weekday, 1
	case 'U':
		n = (yearDay + 7 - weekday) / 7
	case 'W':
		n = (yearDay + 7 - (weekday+6)%7) / 7
	case 'V':
		n = isoWeek
	case 'G':
		n, width = isoYear, 4
	case 'g':
		n = isoYear % 100
	case 's':
		return fmt.Sprint(t.Unix()), true
	default:
		return "", false
	}
	switch {
	case flag == '-':
		return fmt.Sprint(n), true
	case flag == '_', blank && flag != '0':
		return fmt.Sprintf("%*d", width, n), true
	}
	return fmt.Sprintf("%0*d", width, n), true
}
