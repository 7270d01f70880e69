import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitepress';
import { githubSlug } from './github-slug.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

const PUBLIC = path.join(ROOT, 'docs/public');

/** Pages at their addresses: `docs/tour.md` is /tour.html, and the README of a folder its index. */
const address = (file) => file.replace(/^docs\//, '').replace(/(^|\/)README\.md$/, '$1index.md');

export default defineConfig({
  title: 'Slipway',
  description: 'An agent development service',
  head: [['link', { rel: 'icon', href: 'data:,' }]],
  srcDir: ROOT,
  srcExclude: ['**/.*/**', 'deploy/package/**', 'test/**', 'demo/**', 'dist/**', 'release/**', 'packages/**'],
  rewrites: address,
  // Examples name the reader's own machine.
  ignoreDeadLinks: 'localhostLinks',
  markdown: {
    linkify: false,
    anchor: { slugify: githubSlug },
    config: (md) => {
      md.core.ruler.push('links-of-the-repository', linkPages);
      // Vue would run the placeholders of examples.
      md.renderer.rules.code_inline = (tokens, index) =>
        `<code v-pre>${md.utils.escapeHtml(tokens[index].content)}</code>`;
    },
  },
  transformPageData(page) {
    if (page.filePath === 'docs/configuration.md') {
      page.frontmatter.outline = 2;
    }
  },
  buildEnd({ outDir }) {
    const text = readFileSync(path.join(PUBLIC, 'llms.txt'), 'utf8');
    const links = text.replaceAll(/\]\(([^)#]+\.md)/g, (_, link) => {
      return `](/${address(path.relative(ROOT, path.join(PUBLIC, link))).replace(/\.md$/, '.html')}`;
    });
    writeFileSync(path.join(outDir, 'llms.txt'), links);
  },
  themeConfig: {
    search: { provider: 'local' },
    outline: [2, 3],
    sidebar: [
      {
        text: 'Begin',
        items: [
          { text: 'First result', link: '/' },
          { text: 'Clients', link: '/clients' },
          { text: 'Automations', link: '/automations' },
          { text: 'Notifications', link: '/notifications' },
          { text: 'Tool server', link: '/tool-server' },
          { text: 'Agents of others', link: '/agents' },
        ],
      },
      {
        text: 'Operate',
        items: [
          { text: 'Install', link: '/operations/install' },
          { text: 'Configure', link: '/operations/configure' },
          { text: 'Configuration', link: '/configuration' },
          { text: 'Sign-in', link: '/operations/sign-in' },
          { text: 'Run', link: '/operations/run' },
          { text: 'Upgrade', link: '/operations/upgrade' },
          { text: 'Recipes', link: '/operations/recipes' },
          { text: 'Recover', link: '/operations/recover' },
          { text: 'Kubernetes', link: '/deploy/kubernetes/' },
          { text: 'Dashboard and alerts', link: '/deploy/observability/' },
          { text: 'Scaling', link: '/scaling' },
          { text: 'Security', link: '/SECURITY' },
          { text: 'Changelog', link: '/CHANGELOG' },
        ],
      },
      {
        text: 'Contribute',
        items: [
          { text: 'Contributing', link: '/CONTRIBUTING' },
          { text: 'Tour', link: '/tour' },
          { text: 'Glossary', link: '/glossary' },
          { text: 'Decisions', link: '/adr/' },
          { text: 'Figures of quality', link: '/quality' },
          { text: 'Benches', link: '/bench/' },
          { text: 'Releasing', link: '/releasing' },
        ],
      },
    ],
  },
  vite: {
    // Pages are above the folder that has Vue.
    resolve: {
      alias: [{ find: /^vue(?=$|\/)/, replacement: path.join(import.meta.dirname, 'node_modules/vue') }],
    },
    publicDir: PUBLIC,
    // Bundled: the service's own version, which is found from the pages, is another one than Vue's.
    ssr: { noExternal: ['entities'] },
    server: { watch: { ignored: ['**/node_modules/**', '**/.data/**', '**/dist/**'] } },
  },
});

/** Links lead to pages by their addresses; what is no page, such as a source file, is text. */
function linkPages({ tokens, env }) {
  for (const { children } of tokens) {
    for (const [at, token] of (children ?? []).entries()) {
      const href = token.type === 'link_open' ? decodeURI(token.attrGet('href')) : '';
      const [name, anchor] = href.split('#');
      if (name === '' || /^[a-z]+:/.test(name)) {
        continue;
      }
      const target = path.relative(ROOT, path.resolve(path.dirname(env.realPath ?? env.path), name));
      // A dead link is left to VitePress, which ends the build.
      if (!existsSync(path.join(ROOT, target))) {
        continue;
      }
      const page = [target, path.join(target, 'README.md')].find(
        (file) => file.endsWith('.md') && !file.startsWith('packages/') && existsSync(path.join(ROOT, file)),
      );
      if (page === undefined) {
        token.tag = 'span';
        token.attrs = null;
        children.slice(at).find(({ type }) => type === 'link_close').tag = 'span';
      } else {
        token.attrSet('href', `/${address(page)}${anchor === undefined ? '' : `#${anchor}`}`);
      }
    }
  }
}
