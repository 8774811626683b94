<?php
// One page of a small application of PHP, asked for again and again.
//
// Usage: php -n pages.php FILES BYTES REQUESTS on|off|checked. Makes an application of so many source files of so many bytes, has
// PHP's own server answer for it with or without the cache of compiled code, and prints one line of JSON: the nanoseconds
// of every request. Inside the timed region: connecting, asking, all that the page does, reading its answer to the end.
// The page includes all files and calls a function of each, so that an answer that is right says that all were read.
// Three requests are warm-up. The cache is PHP's as it comes, but for files that are younger than two seconds, which it
// would otherwise leave out; with `checked` it looks for every page whether a file has changed, and not every two seconds.

[, $files, $bytes, $requests] = array_map('intval', array_slice($argv, 0, 4));
$cache = $argv[4];
$folder = getcwd() . '/site';

function fail(string $why): never
{
    fwrite(STDERR, $why . "\n");
    exit(1);
}

function source(int $number, int $bytes): string
{
    $text = "<?php\nfunction part$number(int \$x): int\n{\n    return \$x + 1;\n}\n";
    for ($more = 0; strlen($text) < $bytes; $more++) {
        $text .= "function part{$number}_$more(array \$row): string\n{\n"
            . "    \$cells = [];\n    foreach (\$row as \$key => \$value) {\n"
            . "        \$cells[] = '<td class=\"' . htmlspecialchars((string) \$key) . '\">' . \$value . '</td>';\n    }\n"
            . "    return '<tr>' . implode('', \$cells) . '</tr>';\n}\n";
    }
    return $text;
}

mkdir($folder) || fail('the folder of the site cannot be made');
for ($number = 0; $number < $files; $number++) {
    $parent = sprintf('%s/part-%03d', $folder, intdiv($number, 50));
    is_dir($parent) || mkdir($parent) || fail("$parent cannot be made");
    $path = sprintf('%s/source-%05d.php', $parent, $number);
    file_put_contents($path, source($number, $bytes)) || fail("$path cannot be written");
}
$page = <<<'PAGE'
<?php
$sum = 0;
for ($number = 0; $number < FILES; $number++) {
    require __DIR__ . sprintf('/part-%03d/source-%05d.php', intdiv($number, 50), $number);
    $sum += ('part' . $number)($number);
}
$status = function_exists('opcache_get_status') ? opcache_get_status(false) : false;
echo 'sum ', $sum, ' cache ', $status && $status['opcache_enabled'] ? 'on' : 'off', "\n";
PAGE;
file_put_contents($folder . '/index.php', str_replace('FILES', (string) $files, $page));

$options = ['-n'];
if ($cache !== 'off') {
    // Newer versions have it built in and take the name of the extension for a mistake.
    $settings = ['opcache.enable=1', 'opcache.file_update_protection=0', 'opcache.max_accelerated_files=100000'];
    if ($cache === 'checked') {
        $settings[] = 'opcache.revalidate_freq=0';
    }
    if (!extension_loaded('Zend OPcache')) {
        array_unshift($settings, 'zend_extension=opcache');
    }
    foreach ($settings as $setting) {
        array_push($options, '-d', $setting);
    }
}

$free = stream_socket_server('tcp://127.0.0.1:0') ?: fail('no port is free on the loopback');
$address = stream_socket_get_name($free, false);
fclose($free);
$nowhere = ['file', '/dev/null', 'r+'];
$command = [PHP_BINARY, ...$options, '-S', $address, '-t', $folder, $folder . '/index.php'];
$server = proc_open($command, [$nowhere, $nowhere, $nowhere], $pipes, $folder);
$server || fail('the server cannot be started');

function ask(string $address): string|false
{
    $stream = @stream_socket_client('tcp://' . $address, $code, $why, 30);
    if (!$stream) {
        return false;
    }
    fwrite($stream, "GET / HTTP/1.0\r\nHost: localhost\r\n\r\n");
    $answer = stream_get_contents($stream);
    fclose($stream);
    return $answer;
}

$answer = false;
for ($try = 0; $answer === false && $try < 2000; $try++) {
    proc_get_status($server)['running'] || fail('the server ended by itself');
    $answer = ask($address);
    $answer === false && usleep(5000);
}
ask($address);
ask($address);
$ns = [];
for ($request = 0; $request < $requests; $request++) {
    $begin = hrtime(true);
    $answer = ask($address);
    $ns[] = hrtime(true) - $begin;
}
proc_terminate($server);
proc_close($server);
if (!preg_match('/sum ([0-9]+) cache (on|off)\s*$/', (string) $answer, $found)) {
    fail('the page answered: ' . substr((string) $answer, 0, 500));
}
echo json_encode([
    'format' => 'tare-php-pages/1',
    'php' => PHP_VERSION,
    'sum' => (int) $found[1],
    'wanted_sum' => intdiv($files * ($files + 1), 2),
    'cache' => $found[2],
    'wanted_cache' => $cache === 'off' ? 'off' : 'on',
    'ns' => $ns,
]), "\n";
