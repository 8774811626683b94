// The thirty operations by which a comparison of Linux and Windows containers was made, written anew against the framework's
// interface, and three that it lacks: allocation without the date, twice, and a lock that is always taken. Arguments and output are those of BenchmarkDotNet as far as Tare reads them:
// `dotnet operations.dll --filter=*Perf_File.Exists* [--iterationCount=N] [--warmupCount=N]`; without a filter it lists all.
//
// Pilot, warm-up, iterations; the loop's own time is subtracted. What a benchmark needs (files, sockets) is made before the
// timed region and removed after it. BenchmarkDotNet takes 0.5 s an iteration and at least 15 of them; this takes 0.1 s.
using System;
using System.Collections.Concurrent;
using System.Collections.Generic;
using System.Diagnostics;
using System.Globalization;
using System.IO;
using System.Linq;
using System.Net;
using System.Net.Sockets;
using System.Runtime.CompilerServices;
using System.Text.RegularExpressions;
using System.Threading;
using System.Threading.Tasks;

/// One benchmark: runs that many operations; some make something before and remove it after.
sealed class Benchmark
{
    public string Name, Case = "";
    public Action<long> Before = n => { };
    public Action<long> Run;
    public Action After = () => { };
    /// No iteration has more operations.
    public long AtMost = long.MaxValue;
}

static class Operations
{
    const double IterationNs = 1e8;
    static object sink;
    static long number;
    static string folder;

    static int Main(string[] arguments)
    {
        CultureInfo.DefaultThreadCurrentCulture = CultureInfo.CurrentCulture = CultureInfo.InvariantCulture;
        string Given(string option) =>
            arguments.FirstOrDefault(it => it.StartsWith(option + "="))?.Substring(option.Length + 1);
        int Count(string option, int otherwise) => int.TryParse(Given(option), out var n) ? n : otherwise;
        var filter = Given("--filter")?.Trim('*');
        if (filter == null)
        {
            foreach (var it in All()) Console.WriteLine(Heading(it));
            return 0;
        }
        var wanted = All().Where(it => it.Name == filter).ToList();
        if (wanted.Count == 0)
        {
            Console.Error.WriteLine($"no benchmark is named {filter}");
            return 1;
        }
        folder = Path.Combine(Path.GetTempPath(), "operations-" + Process.GetCurrentProcess().Id);
        Directory.CreateDirectory(folder);
        try
        {
            var results = new List<List<double>>();
            foreach (var it in wanted)
                results.Add(Measured(it, Count("--iterationCount", 15), Count("--warmupCount", 3)));
            Console.WriteLine("// * Detailed results *");
            for (var i = 0; i < wanted.Count; i++)
            {
                var mean = results[i].Average();
                var variance = results[i].Sum(it => (it - mean) * (it - mean)) / Math.Max(1, results[i].Count - 1);
                Console.WriteLine(Heading(wanted[i]));
                Console.WriteLine($"Mean = {mean:F4} ns, StdErr = {Math.Sqrt(variance / results[i].Count):F4} ns, N = {results[i].Count}");
            }
            Console.WriteLine("// * Summary *");
            return 0;
        }
        finally { Directory.Delete(folder, true); }
    }

    static string Heading(Benchmark it) => $"{it.Name}: InProcess" + (it.Case == "" ? "" : $" [{it.Case}]");

    static List<double> Measured(Benchmark it, int iterations, int warmUps)
    {
        Console.WriteLine("// Benchmark: " + Heading(it));
        Loop(1);
        long n = 1;
        for (var i = 1; n < it.AtMost; i++)
        {
            var took = Iteration(it, n);
            Line("WorkloadPilot", i, n, took);
            if (took >= IterationNs * 0.5) break;
            n = Math.Min(it.AtMost, took < IterationNs / 16 ? n * 8 : n * 2);
        }
        for (var i = 1; i <= warmUps; i++) Line("WorkloadWarmup", i, n, Iteration(it, n));
        var results = new List<double>();
        for (var i = 1; i <= iterations; i++)
        {
            var whole = Iteration(it, n);
            Line("WorkloadActual", i, n, whole);
            var took = Math.Max(0.0, whole - Loop(n));
            Line("WorkloadResult", i, n, took);
            results.Add(took / n);
        }
        return results;
    }

    static void Line(string what, int i, long n, double took) =>
        Console.WriteLine($"{what} {i,3}: {n} op, {took:F2} ns, {took / n:F4} ns/op");

    static double Iteration(Benchmark it, long n)
    {
        it.Before(n);
        GC.Collect();
        GC.WaitForPendingFinalizers();
        var begun = Stopwatch.GetTimestamp();
        it.Run(n);
        var took = Stopwatch.GetTimestamp() - begun;
        it.After();
        return took * 1e9 / Stopwatch.Frequency;
    }

    /// The time that counting to `n` takes, nanoseconds.
    static double Loop(long n)
    {
        var begun = Stopwatch.GetTimestamp();
        for (long i = 0; i < n; i++) Nothing();
        return (Stopwatch.GetTimestamp() - begun) * 1e9 / Stopwatch.Frequency;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Nothing() { }

    static Benchmark Of(string name, Action<long> run) => new Benchmark { Name = name, Run = run };

    static IEnumerable<Benchmark> All() =>
        Files().Concat(Network()).Concat(Memory()).Concat(OfTheSystem()).Concat(Tasks()).Concat(Patterns());

    static string Numbered(long i) => Path.Combine(folder, "n" + i);

    /// Files and folders that are made or removed at a time.
    const int Batch = 10;

    static IEnumerable<Benchmark> Files()
    {
        yield return Of("Perf_Directory.GetCurrentDirectory", n => { for (long i = 0; i < n; i++) sink = Directory.GetCurrentDirectory(); });
        yield return Of("Perf_Directory.Exists", n => { for (long i = 0; i < n; i++) number += Directory.Exists(folder) ? 1 : 0; });
        yield return Of("Perf_Directory.GetLogicalDrives", n => { for (long i = 0; i < n; i++) sink = Directory.GetLogicalDrives(); });
        var make = Of("Perf_Directory.CreateDirectory", n => { for (long i = 0; i < n; i++) Directory.CreateDirectory(Numbered(i)); });
        make.After = () => { foreach (var it in Directory.GetDirectories(folder)) Directory.Delete(it); };
        make.AtMost = Batch;
        yield return make;
        var there = "";
        var exists = Of("Perf_File.Exists", n => { for (long i = 0; i < n; i++) number += File.Exists(there) ? 1 : 0; });
        exists.Before = n => File.Create(there = Numbered(0)).Dispose();
        yield return exists;
        var delete = Of("Perf_File.Delete", n => { for (long i = 0; i < n; i++) File.Delete(Numbered(i)); });
        delete.Before = n => { for (long i = 0; i < n; i++) File.Create(Numbered(i)).Dispose(); };
        delete.AtMost = Batch;
        yield return delete;
    }

    /// Bytes that one operation sends, one at a time.
    const int Bytes = 10_000;

    static IEnumerable<Benchmark> Network()
    {
        yield return Sockets("SendAsyncThenReceiveAsync_Task", async (from, to, buffer) =>
        {
            await from.SendAsync(new ArraySegment<byte>(buffer), SocketFlags.None);
            await to.ReceiveAsync(new ArraySegment<byte>(buffer), SocketFlags.None);
        });
        yield return Sockets("ReceiveAsyncThenSendAsync_Task", async (from, to, buffer) =>
        {
            var received = to.ReceiveAsync(new ArraySegment<byte>(buffer), SocketFlags.None);
            await from.SendAsync(new ArraySegment<byte>(buffer), SocketFlags.None);
            await received;
        });
        var (send, receive) = (new Awaited(), new Awaited());
        yield return Sockets("SendAsyncThenReceiveAsync_SocketAsyncEventArgs", async (from, to, buffer) =>
        {
            await send.Of(from.SendAsync);
            await receive.Of(to.ReceiveAsync);
        });
        yield return Sockets("ReceiveAsyncThenSendAsync_SocketAsyncEventArgs", async (from, to, buffer) =>
        {
            var received = receive.Of(to.ReceiveAsync);
            await send.Of(from.SendAsync);
            await received;
        });
    }

    /// The older interface, whose end is an event.
    sealed class Awaited
    {
        readonly SocketAsyncEventArgs arguments = new SocketAsyncEventArgs();
        TaskCompletionSource<bool> ended;

        public Awaited()
        {
            arguments.SetBuffer(new byte[1], 0, 1);
            arguments.Completed += (_, it) => ended.SetResult(true);
        }

        public Task Of(Func<SocketAsyncEventArgs, bool> begin)
        {
            ended = new TaskCompletionSource<bool>(TaskCreationOptions.RunContinuationsAsynchronously);
            return begin(arguments) ? ended.Task : Task.CompletedTask;
        }
    }

    static Benchmark Sockets(string method, Func<Socket, Socket, byte[], Task> once)
    {
        Socket from = null, to = null;
        var buffer = new byte[1];
        async Task All(long n) { for (long i = 0; i < n * Bytes; i++) await once(from, to, buffer); }
        return new Benchmark
        {
            Name = "SocketSendReceivePerfTest." + method,
            Before = n =>
            {
                var listener = new Socket(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp);
                listener.Bind(new IPEndPoint(IPAddress.Loopback, 0));
                listener.Listen(1);
                from = new Socket(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp) { NoDelay = true };
                from.Connect(listener.LocalEndPoint);
                to = listener.Accept();
                listener.Dispose();
            },
            Run = n => All(n).GetAwaiter().GetResult(),
            After = () => { from.Dispose(); to.Dispose(); },
        };
    }

    /// What the publication allocates: most of its time is that of the date.
    sealed class Filled
    {
        public readonly DateTime[] Dates;
        public readonly string[] Texts;
        public readonly int[] Numbers;

        public Filled(bool isDated)
        {
            Dates = isDated
                ? Enumerable.Range(0, 1000).Select(_ => DateTime.Now).ToArray()
                : Enumerable.Range(0, 1000).Select(it => new DateTime(it)).ToArray();
            Texts = Enumerable.Range(0, 1000).Select(it => it.ToString()).ToArray();
            Numbers = Enumerable.Range(0, 1000).ToArray();
        }
    }

    static IEnumerable<Benchmark> Memory()
    {
        foreach (var (method, isDated) in new[] { ("MemoryAllocation", true), ("MemoryAllocationWithoutDate", false) })
            foreach (var count in new[] { 1000, 5000 })
                yield return new Benchmark
                {
                    Name = "MemoryAllocations." + method + (count == 1000 ? "" : "_Heavy"),
                    Case = "number_of_objects_to_allocate=" + count,
                    Run = n => { for (long i = 0; i < n * count; i++) sink = new Filled(isDated); },
                };
    }

    static void InSix(Action body)
    {
        var threads = Enumerable.Range(0, 6).Select(_ => new Thread(() => { for (var i = 0; i < 5; i++) body(); })).ToList();
        threads.ForEach(it => it.Start());
        threads.ForEach(it => it.Join());
    }

    static IEnumerable<Benchmark> OfTheSystem()
    {
        var mutex = new Mutex();
        yield return Of("MutexBenchmark.StartThreads", n =>
        {
            for (long i = 0; i < n; i++)
                InSix(() => { if (mutex.WaitOne(50)) { Thread.Sleep(100); mutex.ReleaseMutex(); } });
        });
        yield return Of("MutexBenchmark.EveryLockHeld", n =>
        {
            for (long i = 0; i < n; i++) InSix(() => { mutex.WaitOne(); number++; mutex.ReleaseMutex(); });
        });
        yield return Of("Perf_CultureInfo.GetCurrentCulture", n => { for (long i = 0; i < n; i++) sink = CultureInfo.CurrentCulture; });
        yield return Of("Perf_DateTime.GetNow", n => { for (long i = 0; i < n; i++) number += DateTime.Now.Ticks; });
        yield return Of("Perf_DateTime.GetUtcNow", n => { for (long i = 0; i < n; i++) number += DateTime.UtcNow.Ticks; });
        var one = "OPERATIONS_VARIABLE";
        Environment.SetEnvironmentVariable(one, "value");
        yield return Of("Perf_Environment.GetEnvironmentVariable", n => { for (long i = 0; i < n; i++) sink = Environment.GetEnvironmentVariable(one); });
        yield return Of("Perf_Environment.GetEnvironmentVariables", n => { for (long i = 0; i < n; i++) sink = Environment.GetEnvironmentVariables(); });
        var random = new Random(1);
        var bytes = new byte[1000];
        yield return Of("Perf_Random.Next_int", n => { for (long i = 0; i < n; i++) number += random.Next(10_000); });
        yield return Of("Perf_Random.NextBytes", n => { for (long i = 0; i < n; i++) random.NextBytes(bytes); });
        yield return Of("Perf_Timer.ShortScheduleAndDispose", n => { for (long i = 0; i < n; i++) new Timer(_ => { }, null, 50, -1).Dispose(); });
        yield return Of("Perf_Timer.LongScheduleAndDispose", n => { for (long i = 0; i < n; i++) new Timer(_ => { }, null, int.MaxValue, -1).Dispose(); });
    }

#pragma warning disable 1998
    static async Task Empty() { }
#pragma warning restore 1998
    static async Task Empties(long n) { for (long i = 0; i < n; i++) await Empty(); }
    static async Task Yields(long n) { for (long i = 0; i < n; i++) await Task.Yield(); }
    static async Task InTurn(long n) { for (long i = 0; i < n; i++) await Task.Run(() => { }); }

    static IEnumerable<Benchmark> Tasks()
    {
        const int many = 100_000;
        yield return Of("AsyncMethods.EmptyAsyncMethodInvocation", n => Empties(n).GetAwaiter().GetResult());
        yield return Of("AsyncMethods.SingleYieldMethodInvocation", n => Yields(n).GetAwaiter().GetResult());
        var guard = new ReaderWriterLockSlim();
        yield return Of("Lock.ReaderWriterLockSlimPerf", n => { for (long i = 0; i < n; i++) { guard.EnterReadLock(); guard.ExitReadLock(); } });
        var insert = Of("Multitasking.ConcurrentInsertionsToDictionary", n =>
        {
            for (long i = 0; i < n; i++)
            {
                var known = new ConcurrentDictionary<int, int>();
                Task.WaitAll(Enumerable.Range(0, many).Select(it => Task.Run(() => known.TryAdd(it, it))).ToArray());
                sink = known;
            }
        });
        insert.Case = "number_of_tasks=" + many;
        yield return insert;
        var turn = Of("Multitasking.RunningMultipleTasksSynchronously", n => InTurn(n * many).GetAwaiter().GetResult());
        turn.Case = "number_of_tasks=" + many;
        yield return turn;
    }

    /// Two hundred patterns of many kinds, each with a text that it fits.
    static readonly (string Pattern, string Text)[] Various = Enumerable.Range(0, 20).SelectMany(i => new[]
    {
        ($@"^a{{{i}}}b+$", new string('a', i) + "bbb"),
        ($@"(\w+)-{i}-(\d+)", $"item-{i}-4711"),
        ($@"[a-f]+{i}[^a-f]*", $"abcdef{i}xyz"),
        ($@"(?i)TARE{i}", $"say tare{i} again"),
        ($@"(one|two|three{i})\s+end", $"three{i}   end"),
        ($@"(?<name>\p{{Lu}}\w*)\s{i}", $"Name {i}"),
        ($@"(?<=x{i})y", $"x{i}y"),
        ($@"(a|ab)(c|bcd)(d*){i}", $"abcd{i}"),
        ($@"^\s*(\d{{1,3}}\.){{3}}{i}$", $" 127.0.0.{i}"),
        ($@"(\d)(\d)\2\1-{i}", $"1221-{i}"),
    }).ToArray();

    static void Heavy(int count)
    {
        for (var i = 0; i < count; i++) number += Regex.IsMatch("0123456789", (i % 7).ToString()) ? 1 : 0;
    }

    static IEnumerable<Benchmark> Patterns()
    {
        const int total = 400_000;
        var match = Of("Perf_Regex.Match", n =>
        {
            for (long i = 0; i < n; i++)
                foreach (var (pattern, text) in Various)
                    if (!Regex.Match(text, pattern).Success) throw new InvalidOperationException(pattern);
        });
        match.Before = n => Regex.CacheSize = 0;
        yield return match;
        var heavy = Of("Perf_Regex_Cache.IsMatch", n => { for (long i = 0; i < n; i++) Heavy(total); });
        var many = Of("Perf_Regex_Cache.IsMatch_Multithreading", n =>
        {
            for (long i = 0; i < n; i++) Task.WaitAll(Enumerable.Range(0, 4).Select(_ => Task.Run(() => Heavy(total / 4))).ToArray());
        });
        foreach (var it in new[] { heavy, many })
        {
            it.Before = n => Regex.CacheSize = 15;
            it.Case = $"total={total}, unique=7, cacheSize=15";
            yield return it;
        }
    }
}
