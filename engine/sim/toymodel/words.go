package toymodel

import (
	"slices"
	"strings"
)

// The words of the small grammar in which the simulated worker writes, by part
// of speech. Verbs are past tense, so that no verb has to agree with its subject.
var (
	Determiners = fields(`the a an every another this that`)
	Possessives = fields(`her his their our my`)
	Adjectives  = fields(`old young quiet bright heavy small patient careful honest empty early distant narrow wide
		broken silver green golden wooden gentle sudden curious ordinary eager warm cold clever lonely proud
		simple strange soft steady hidden famous tired brave slow useful second last final amber ancient easy open`)
	Nouns = fields(`river lantern harbour sailor gardener bridge window letter market station engineer teacher
		mountain village island orchard kitchen library painter doctor captain stranger neighbour child
		morning evening winter summer storm shadow garden corner table clock mirror blanket basket candle
		ladder hammer wagon engine signal machine message answer question story song secret promise map
		road field forest valley lake tower wall door roof street square boat train bell key coat book page
		pencil cup bottle stone feather apple egg owl actor uncle aunt artist editor idea echo hour
		dog cat horse bird fox baker miller keeper pilot driver student friend sister brother mother father`)
	Plurals = fields(`children neighbours lanterns letters stories bridges windows birds horses boats trains bells
		workers students friends travellers clouds waves leaves stones roads songs questions answers machines`)
	Transitive = fields(`carried followed opened painted watched repaired remembered described crossed found built
		lifted counted borrowed answered noticed visited measured folded cleaned guarded planted signed
		copied hid lost kept sold drew moved heard wrote read forgot admired ignored welcomed collected`)
	Intransitive = fields(`waited slept laughed listened returned travelled rested wandered sang whispered smiled
		worked paused hesitated arrived disappeared stopped nodded vanished hurried`)
	Adverbs      = fields(`quietly slowly carefully again together twice alone gladly politely often outside upstairs`)
	Prepositions = fields(`across under near behind beside along through beyond above before after without against inside from toward`)
	Conjunctions = fields(`and but while because although until so`)
	Pronouns     = fields(`she he they we it somebody everyone nobody`)
	Openers      = fields(`yesterday later meanwhile sometimes finally afterwards eventually soon`)
	Numerals     = fields(`two three four five seven ten twelve some many few several`)
)

// extra words are no part of the grammar; prompts and chats use them.
var extra = fields(`user assistant system hello world please tell me about write what is are was were be to of in on for
	with you your I can will would how why when where who which not yes no thank say short long tool time day
	name number token model answer explain`)

// pieces are no words: punctuation, line ends, and characters of other scripts,
// some whole, some in part. An emoji whose bytes are not listed whole is spelled
// by several tokens.
var pieces = []string{
	"\n\n", "...", "?!", " —", "—", "“", "”", "’", "'s", "'t", "'m", "'re", "\":", "{\"", "\"}", "\",", "  ", "    ",
	"é", "è", "ü", "ö", "ä", "ß", "ñ", "ç", "å", "ø", "€", "£", "°", "½", "×",
	"я", "да", "мир", "λ", "π", "שלום", "世", "界", "你", "好", "日", "本", "語", "한", "국", "ا", "ล",
	"🚀", "✨", "é́",
	"\xe4\xb8", "\xe7\x95", "\xe6\x97", // the first two bytes of common Chinese characters
	"\xf0\x9f", " \xf0\x9f", "\xf0\x9f\x98", "\xf0\x9f\x8c", // how emoji begin
	"\x98\x82", "\x8e\x89", // how two of them go on
}

// Specials are the special tokens, in the order of their ids.
var Specials = []string{"<|endoftext|>", "<|im_start|>", "<|im_end|>"}

// Marks are added tokens, too, behind Specials, which are not special: their text is
// shown, as Qwen 3 has it.
var Marks = []string{"<think>", "</think>"}

func fields(s string) []string { return strings.Fields(s) }

// Capital returns the word with a capital first letter.
func Capital(word string) string { return strings.ToUpper(word[:1]) + word[1:] }

// Words returns every word of the vocabulary in the forms that are one token:
// lower case and capital, with and without a leading space. It is sorted.
func Words() []string {
	var all []string
	for _, class := range [][]string{
		Determiners, Possessives, Adjectives, Nouns, Plurals, Transitive, Intransitive,
		Adverbs, Prepositions, Conjunctions, Pronouns, Openers, Numerals, extra,
	} {
		for _, w := range class {
			if strings.Contains(w, "-") {
				continue // the pre-tokenizer splits it; it is written with three tokens
			}
			all = append(all, w, " "+w, Capital(w), " "+Capital(w))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
