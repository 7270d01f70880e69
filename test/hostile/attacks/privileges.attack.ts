import { type Attack, everywhere, held } from '../attack.js';

/** Prints what the tool is, and what it may become. */
const BECOME = `
grep -E '^(Uid|CapEff|CapPrm|NoNewPrivs)' /proc/self/status
cp "$(readlink -f /bin/sh)" "$HOME/shell" 2> /dev/null && chmod 6755 "$HOME/shell" && "$HOME/shell" -p -c 'echo AFTER SETUID $(id -u)' 2> /dev/null
for program in $(find / -xdev -perm -4000 -type f 2> /dev/null | grep -E '/(su|sudo|pkexec|newgrp|mount)$'); do
  case $program in
    */su) echo "AFTER su $(timeout 3 $program -c 'id -u' root < /dev/null 2> /dev/null)" ;;
    */sudo) echo "AFTER sudo $(timeout 3 $program -n id -u 2> /dev/null)" ;;
    */pkexec) echo "AFTER pkexec $(timeout 3 $program id -u < /dev/null 2> /dev/null)" ;;
  esac
done
perl -e '$> = 0; $< = 0; print "AFTER seteuid ", ($> == 0 ? 0 : "refused"), "\\n"'
perl -e 'require "syscall.ph"' 2> /dev/null
`;

export const privileges: Attack = {
  name: 'privileges',
  finding: 'held',
  what: "Bob's tool looks for capabilities, and for a program of the machine that makes it root.",
  expected: everywhere(held('it is no root, has no capabilities, and no program gives it any')),
  run: async ({ bob }) => {
    const { output } = await bob.sh(BECOME, 60);
    const field = (name: string) => new RegExp(`^${name}:\\s*(\\S+)`, 'm').exec(output)?.[1] ?? '';
    const became = [...output.matchAll(/^AFTER (\w+) 0$/gm)].map(([, by]) => by ?? '');
    const isRootless = field('Uid') !== '0';
    const capabilities = [field('CapEff'), field('CapPrm')].filter((mask) => !/^0+$/.test(mask));
    return {
      held: isRootless && capabilities.length === 0 && became.length === 0 && field('NoNewPrivs') === '1',
      seen: `user ${field('Uid')}, capabilities ${capabilities.join(', ') || 'none'}, new privileges ${field('NoNewPrivs') === '1' ? 'refused' : 'possible'}, root by ${became.join(', ') || 'nothing'}`,
    };
  },
};
