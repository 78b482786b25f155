"""Words that carry no topic, by language: a label made of them alone says too little.

Only function words (articles, pronouns, prepositions, conjunctions, auxiliary verbs,
particles). Published lists are made for search indexes and have hundreds of topic words
as well, for which a label must not be treated as weak: *computer, system, world, state*
in stopwords-iso's English, *lugar, obra, personne, gruppo* in its other languages.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

STOP_WORDS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        language: frozenset(words.split())
        for language, words in {
            "en": """
                a about above after again against all also am an and another any are as at be
                because been before being below between both but by can could did do does doing
                done down during each either else ever every for from had has have having he her
                here hers herself him himself his how i if in into is it its itself just may me
                might more most must my myself neither no nor not now of off often on once one
                only or other our ours ourselves out over own rather same shall she should since
                so some such than that the their theirs them themselves then there these they
                this those though through thus to too under until up upon us very was we were
                what when where whether which while who whom whose why will with within without
                would yet you your yours yourself yourselves
            """,
            "de": """
                aber als also am an andere anderen auch auf aus ausser bei beim bin bis bist da
                dabei dadurch dafür damit dann daran darauf daraus darf darin darum das dass davon
                dazu dein deine dem den denn der deren des dessen dich die dies diese diesem diesen
                dieser dieses dir doch dort du durch ein eine einem einen einer eines er es etwas
                euch euer eure für gegen gewesen hab habe haben hat hatte hatten hier hin hinter
                ich ihm ihn ihnen ihr ihre ihrem ihren ihrer im in indem ins ist ja jede jedem
                jeden jeder jedes jene jener kann kein keine keinem keinen keiner können könnte man
                manche mehr mein meine mich mir mit muss müssen nach nicht nichts noch nun nur ob
                oder ohne sehr sein seine seinem seinen seiner seit selbst sich sie sind so solche
                soll sollte sondern sonst über um und uns unser unsere unter viel vom von vor wann
                war waren warum was weder weil welche welcher wenn wer werde werden wie wieder will
                wir wird wo wurde wurden würde würden zu zum zur zwar zwischen
            """,
            "fr": """
                à afin ai aie ainsi alors après as assez au aucun aucune aussi autre autres aux
                avait avant avec avez avons car ce ceci cela celle celles celui ces cet cette ceux
                chaque chez ci comme comment dans de déjà depuis des donc dont du elle elles en
                encore entre es est et étaient était étant été êtes être eu eux fait fut il ils
                jamais je jusque la là laquelle le lequel les lesquels leur leurs lors lui ma mais
                me même mes mien moi moins mon ne ni non nos notre nous on ont or ou où par parce
                pas pendant peu peut plus pour pourquoi puis quand que quel quelle quelles quelque
                quels qui quoi sa sans se selon sera ses si sien son sont sous souvent sur ta tandis
                te tes toi ton toujours tous tout toute toutes très trop tu un une vers voici voilà
                vos votre vous y
            """,
            "es": """
                a además al algo algún alguna algunas alguno algunos ante antes aquel aquella aun
                aún aunque bajo bien cada como cómo con contra cual cuál cuales cualquier cuando
                cuándo de del desde donde dónde dos durante e el él ella ellas ellos en entre era
                eran eres es esa esas ese eso esos esta está están estas este esto estos fue fueron
                ha haber había habían han hasta hay he la las le les lo los más me mi mí mientras
                mis mucho muy nada ni no nos nosotros nuestra nuestro o os otra otras otro otros
                para pero poco por porque pues que qué quien quién quienes se sea según ser si sí
                sido sin sino sobre somos son soy su sus también tan tanto te tiene todo todos tras
                tu tú tus u un una unas uno unos usted ustedes y ya yo
            """,
            "it": """
                a ad agli ai al alla alle allo anche ancora avere aveva avevano c che chi ci come
                con contro cosa cui da dagli dai dal dalla dalle dallo degli dei del della delle
                dello di dopo dove due durante e è ed egli era erano essere fa fino fra gli ha hai
                hanno ho i il in io la le lei li lo loro lui ma me mentre mi mia mie miei mio molto
                ne negli nei nel nella nelle nello no noi non nostra nostro o ogni oltre per perché
                però più poi prima proprio qual quale quando quanto quella quelle quelli quello
                questa queste questi questo qui se sei senza si sia siamo sono sopra sotto stata
                stati stato su sua sue sugli sui sul sulla sulle sullo suo suoi tra tu tua tuo
                tutti tutto un una uno vi voi
            """,
            "nl": """
                aan al alle alleen als altijd andere ben bij boven daar dan dat de deze die dit doch
                doen door dus een eens elk elke en er ge geen geweest had hadden hare heb hebben
                heeft hem hen het hier hij hoe hun iemand iets ik in is ja je jij jou jouw jullie
                kan kon kunnen maar me men met mij mijn moet moeten na naar niet niets nog nu of om
                omdat onder ons onze ook op over reeds te tegen toch toen tot tussen u uit uw van
                vanaf veel voor waar waarom waren was wat we wel welke werd werden wie wij wil
                worden wordt zal ze zelf zich zij zijn zo zonder zou zouden
            """,
            "pt": """
                a à ainda além algo alguém algum alguma alguns ante antes ao aos apenas após aquela
                aquele aquilo as às até cada com como contra da das de dela dele deles depois desde
                do dos durante e é ela elas ele eles em enquanto entre era eram essa essas esse
                esses esta está estão este estes eu foi foram há isso isto já lhe lhes mais mas me
                mesmo meu meus minha muito na não nas nem no nos nós nossa nosso num numa o onde os
                ou outra outro para pela pelas pelo pelos pois por porque qual quando que quem são
                se seja sem sempre ser seu seus si sido sob sobre sua suas também te tem têm teu
                toda todas todo todos tu tua um uma uns você vocês vos
            """,
        }.items()
    }
)
"""Primary language subtag to its function words, folded (``ausser`` for ``außer``)."""
