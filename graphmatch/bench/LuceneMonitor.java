import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.lucene.analysis.core.WhitespaceAnalyzer;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.TextField;
import org.apache.lucene.index.Term;
import org.apache.lucene.monitor.Monitor;
import org.apache.lucene.monitor.MonitorConfiguration;
import org.apache.lucene.monitor.MonitorQuery;
import org.apache.lucene.monitor.MultipassTermFilteredPresearcher;
import org.apache.lucene.monitor.QueryMatch;
import org.apache.lucene.search.BooleanClause.Occur;
import org.apache.lucene.search.BooleanQuery;
import org.apache.lucene.search.TermQuery;

/** Lines of words are subscriptions until an empty line; then each line is an event: its titles, with tabs between. */
public class LuceneMonitor {
  public static void main(String[] arguments) throws Exception {
    var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    var configuration = new MonitorConfiguration().setQueryUpdateBufferSize(50_000);
    var monitor = new Monitor(new WhitespaceAnalyzer(), new MultipassTermFilteredPresearcher(3), configuration);
    List<MonitorQuery> queries = new ArrayList<>();
    for (String line; !(line = lines.readLine()).isEmpty(); ) {
      var words = new BooleanQuery.Builder();
      for (String word : line.split(" ")) words.add(new TermQuery(new Term("title", word)), Occur.MUST);
      queries.add(new MonitorQuery(Integer.toString(queries.size()), words.build()));
    }
    monitor.register(queries);
    System.out.println();
    for (String line; (line = lines.readLine()) != null; ) {
      var titles = line.split("\t");
      var documents = new Document[titles.length];
      for (int item = 0; item < titles.length; item++) {
        documents[item] = new Document();
        documents[item].add(new TextField("title", titles[item], Field.Store.NO));
      }
      var matches = monitor.match(documents, QueryMatch.SIMPLE_MATCHER);
      var found = new StringBuilder();
      for (int item = 0; item < titles.length; item++)
        for (QueryMatch match : matches.getMatches(item)) found.append(match.getQueryId()).append(' ');
      System.out.println(found);
    }
    monitor.close();
  }
}
