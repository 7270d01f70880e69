import { expect, it } from '@jest/globals';
import { commonPattern } from './common-pattern.js';

// ggml-org/llama.cpp#27580, #27397, #27597, aebrer/dreb#422: one such pattern, and the server refuses each request.
it.each([
  [String.raw`^\d+$`, '^[0-9]+$'],
  [String.raw`^[\w-]+\s\S$`, String.raw`^[A-Za-z0-9_-]+[ \t\r\n][^ \t\r\n]$`],
  [String.raw`^(https:\/\/)?[\d.]+\.com$`, String.raw`^(https://)?[0-9.]+\.com$`],
  [String.raw`^[a\-z]+\-[\]\.]$`, String.raw`^[az-]+-[\].]$`],
  ['^(?:[01]|2)$', '^([01]|2)$'],
  [String.raw`^[^\n\\]*$`, String.raw`^[^\n\\]*$`],
  [String.raw`^(?!-)[a-z]+$`, null],
  [String.raw`^(?<=a)b$`, null],
  [String.raw`^\bword$`, null],
  [String.raw`^[\D]$`, null],
  [String.raw`^\u0041$`, null],
  [String.raw`^(a)\1$`, null],
  [String.raw`\S`, null],
  ['^a', null],
  [String.raw`^a\$`, null],
])('%s becomes %s', (pattern, common) => {
  expect(commonPattern(pattern)).toBe(common);
  if (common !== null) {
    expect(() => new RegExp(common, 'u')).not.toThrow();
  }
});
